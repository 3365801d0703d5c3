//! Which signatures of handshakes are believed.

/// What both kinds of verifiers of rustls ask about signatures: those count that rustls itself believes. Their traits differ,
/// and their methods do not.
macro_rules! signatures_are_judged_by_rustls {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(
                message,
                certificate,
                signed,
                &$crate::signatures::algorithms(),
            )
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(
                message,
                certificate,
                signed,
                &$crate::signatures::algorithms(),
            )
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            $crate::signatures::algorithms().supported_schemes()
        }
    };
}

pub(crate) use signatures_are_judged_by_rustls;

/// The algorithms of signatures, in certificates as in handshakes.
pub(crate) fn algorithms() -> rustls::crypto::WebPkiSupportedAlgorithms {
    rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms
}
