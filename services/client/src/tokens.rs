//! Tokens.

use tripod_calls::Way;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::tokens_client::TokensClient;

impl Client {
    /// Makes a token, whose text is told this once.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call. After one whose outcome is not known there may be a token that nobody
    /// holds; it ends by itself.
    pub async fn create_token(
        &self,
        request: &wire::CreateTokenRequest,
    ) -> Result<wire::CreatedToken, Error> {
        let create = |way: Way| {
            let request = request.clone();
            async move { TokensClient::new(way).create(request).await }
        };
        self.caller().call("auth token create", Repeat::IfNotExecuted, create).await
    }

    /// What is known of all tokens, by id; never their texts.
    ///
    /// # Errors
    /// As any call.
    pub async fn tokens(&self) -> Result<Vec<wire::Token>, Error> {
        let mut all: Vec<wire::Token> = Vec::new();
        loop {
            let after = all.last().map(|last| last.id.clone()).unwrap_or_default();
            let list = |way: Way| {
                let request = wire::ListTokensRequest { after: after.clone() };
                async move { TokensClient::new(way).list(request).await }
            };
            let page = self.caller().call("auth token list", Repeat::Freely, list).await?;
            let is_last = !page.more || page.tokens.is_empty();
            all.extend(page.tokens);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Ends a token. Again: no change.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call.
    pub async fn revoke_token(&self, request: &wire::RevokeTokenRequest) -> Result<(), Error> {
        let revoke = |way: Way| {
            let request = request.clone();
            async move { TokensClient::new(way).revoke(request).await }
        };
        self.caller().call("auth token revoke", Repeat::Freely, revoke).await.map(drop)
    }

    /// Says how nodes are to be protected at least. Again: no change.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call.
    pub async fn set_floor(&self, request: &wire::SetFloorRequest) -> Result<(), Error> {
        let set = |way: Way| {
            let request = request.clone();
            async move { TokensClient::new(way).set_floor(request).await }
        };
        self.caller().call("auth floor", Repeat::IfNotExecuted, set).await.map(drop)
    }
}
