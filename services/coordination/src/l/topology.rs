//! Device topologies, in both layouts that releases have sent.
//!
//! | layout | field 1 | field 2 | field 3 |
//! |---|---|---|---|
//! | 2020 to 2022 | node id | devices | |
//! | later | node id | boot id, a text | devices |
//!
//! A message does not say which one it has. Field 3 tells, and so does a repeated field 2. A single
//! field 2 is a device if it reads as one: every key of a device is a control character, a blank or a
//! parenthesis, and boot ids are hexadecimal digits and dashes. What is not known is passed on.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::WireType;

use super::wire::{Field, fields, put_content, put_number};

const NODE_ID: u32 = 1;
const OLD_DEVICES: u32 = 2;
const BOOT_ID: u32 = 2;
const NEW_DEVICES: u32 = 3;

const DEVICE_GLOBAL_ID: u32 = 4;
const DEVICE_SLICE: u32 = 5;

/// The one field of a global topology.
const NODES: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    Old,
    New,
}

/// One node's topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology {
    bytes: Bytes,
    node_id: i32,
    /// `None` if there is neither a device nor a boot id to tell it by.
    layout: Option<Layout>,
    boot_id: Option<Bytes>,
    devices: Vec<Vec<Field>>,
    unknown: Vec<Field>,
}

impl Topology {
    /// # Errors
    /// The bytes are no message, or a device in them is none.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, DecodeError> {
        let found = fields(bytes.clone())?;
        let layout = layout(&found);
        let mut topology =
            Self { bytes, node_id: 0, layout, boot_id: None, devices: Vec::new(), unknown: Vec::new() };
        for field in found {
            match (field.number, field.wire, layout) {
                // A negative id arrives as the 64 bits of its extension; the upper half says nothing.
                (NODE_ID, WireType::Varint, _) => topology.node_id = (field.value as u32).cast_signed(),
                (OLD_DEVICES, WireType::LengthDelimited, Some(Layout::Old))
                | (NEW_DEVICES, WireType::LengthDelimited, Some(Layout::New)) => {
                    topology.devices.push(fields(field.content)?);
                }
                (BOOT_ID, WireType::LengthDelimited, Some(Layout::New)) => {
                    topology.boot_id = Some(field.content);
                }
                _ => topology.unknown.push(field),
            }
        }
        Ok(topology)
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn node_id(&self) -> i32 {
        self.node_id
    }

    pub(super) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Writes the node in a layout, with devices that are numbered already.
    fn write(&self, layout: Layout, devices: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(NODE_ID, i64::from(self.node_id).cast_unsigned(), &mut out);
        let number = match layout {
            Layout::Old => OLD_DEVICES,
            Layout::New => {
                if let Some(boot_id) = &self.boot_id {
                    put_content(BOOT_ID, boot_id, &mut out);
                }
                NEW_DEVICES
            }
        };
        for device in devices {
            put_content(number, device, &mut out);
        }
        for field in &self.unknown {
            out.put_slice(&field.raw);
        }
        out
    }
}

/// The topology of all `nodes`, in order, in the layout of the caller's `own`. Devices are counted
/// through, and in the newer layout those of one boot id make a slice, in order of appearance.
pub(crate) fn global(nodes: &[Topology], own: &Topology) -> Bytes {
    let known = std::iter::once(own).chain(nodes).find_map(|node| node.layout);
    let layout = known.unwrap_or(Layout::New);
    let mut slices: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut next_id = 0;
    let mut out = Vec::new();
    for node in nodes {
        let next_slice = slices.len() as u64;
        let slice = *slices.entry(node.boot_id.as_deref().unwrap_or_default()).or_insert(next_slice);
        let slice = (node.layout == Some(Layout::New)).then_some(slice);
        let number = |device: &Vec<Field>| {
            let numbered = numbered(device, next_id, slice);
            next_id += 1;
            numbered
        };
        let devices: Vec<Vec<u8>> = node.devices.iter().map(number).collect();
        put_content(NODES, &node.write(layout, &devices), &mut out);
    }
    out.into()
}

/// A device with its global id, and with its slice unless the client numbers slices itself.
fn numbered(device: &[Field], global_id: u64, slice: Option<u64>) -> Vec<u8> {
    let replaced =
        |field: &&Field| field.number == DEVICE_GLOBAL_ID || field.number == DEVICE_SLICE && slice.is_some();
    let mut out = Vec::new();
    for field in device.iter().filter(|field| field.number < DEVICE_GLOBAL_ID) {
        out.put_slice(&field.raw);
    }
    put_number(DEVICE_GLOBAL_ID, global_id, &mut out);
    put_number(DEVICE_SLICE, slice.unwrap_or(0), &mut out);
    for field in device.iter().filter(|field| field.number >= DEVICE_GLOBAL_ID && !replaced(field)) {
        out.put_slice(&field.raw);
    }
    out
}

fn layout(fields: &[Field]) -> Option<Layout> {
    let with_length = |number| {
        fields.iter().filter(move |field| field.number == number && field.wire == WireType::LengthDelimited)
    };
    if with_length(NEW_DEVICES).next().is_some() {
        return Some(Layout::New);
    }
    let mut second = with_length(OLD_DEVICES);
    let only = second.next()?;
    if second.next().is_some() || is_device(&only.content) { Some(Layout::Old) } else { Some(Layout::New) }
}

/// Whether the bytes are a device and nothing else. A device without any field is empty; a boot id
/// that is empty is not sent.
fn is_device(content: &Bytes) -> bool {
    let known = |field: &Field| match field.number {
        1 | DEVICE_GLOBAL_ID | DEVICE_SLICE => field.wire == WireType::Varint,
        2 | 3 => field.wire == WireType::LengthDelimited,
        _ => false,
    };
    fields(content.clone()).is_ok_and(|fields| fields.iter().all(known))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(parts: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        parts(&mut out);
        out
    }

    fn device(ordinal: u64, extra: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        message(|out| {
            put_number(1, ordinal, out);
            put_content(2, b"gpu", out);
            put_content(3, b"v", out);
            extra(out);
        })
    }

    fn node(id: u64, boot_id: Option<&str>, devices: &[Vec<u8>]) -> Topology {
        let bytes = message(|out| {
            put_number(NODE_ID, id, out);
            if let Some(boot_id) = boot_id {
                put_content(BOOT_ID, boot_id.as_bytes(), out);
            }
            devices.iter().for_each(|device| put_content(NEW_DEVICES, device, out));
            put_content(7, b"unk", out);
        });
        Topology::parse(bytes.into()).unwrap()
    }

    fn old_node(id: u64, devices: &[Vec<u8>]) -> Topology {
        let bytes = message(|out| {
            put_number(NODE_ID, id, out);
            devices.iter().for_each(|device| put_content(OLD_DEVICES, device, out));
        });
        Topology::parse(bytes.into()).unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Recorded from jaxlib 0.4.13's service. What it does not know stays behind what it knows.
    #[test]
    fn devices_are_numbered_as_upstream_numbers_them() {
        let old_numbers = |out: &mut Vec<u8>| {
            put_number(DEVICE_GLOBAL_ID, 77, out);
            put_number(DEVICE_SLICE, 3, out);
        };
        let unknown = |out: &mut Vec<u8>| {
            old_numbers(out);
            put_content(9, b"zz", out);
        };
        let nodes = [
            node(0, Some("a"), &[device(0, old_numbers), device(1, old_numbers)]),
            node(1, Some("b"), &[device(0, unknown), device(1, old_numbers)]),
            node(2, Some("a"), &[device(5, old_numbers)]),
        ];
        assert_eq!(
            hex(&global(&nodes, &nodes[1])),
            "0a201201611a0812036770751a01761a0c080112036770751a017620013a03756e6b0a2c08011201621a\
             1012036770751a0176200228014a027a7a1a0e080112036770751a0176200328013a03756e6b0a1808021201\
             611a0c080512036770751a017620043a03756e6b"
        );
    }

    proptest! {
        /// Whatever a client sends, and whoever asks for it.
        #[test]
        fn random_bytes_never_panic(
            one in proptest::collection::vec(prop_oneof![0_u8..32, any::<u8>()], 0..64),
            other in proptest::collection::vec(prop_oneof![0_u8..32, any::<u8>()], 0..64),
        ) {
            let nodes = [one, other].map(|bytes| Topology::parse(bytes.into()));
            if let [Ok(one), Ok(other)] = nodes {
                let told = fields(global(&[one.clone(), other], &one)).expect("it was just written");
                prop_assert_eq!(told.len(), 2);
                for node in told {
                    fields(node.content).expect("it was just written");
                }
            }
        }
    }

    #[test]
    fn the_layout_is_told_by_what_is_there() {
        let plain = |ordinal| device(ordinal, |_| {});
        let layout = |topology: &Topology| (topology.layout, topology.devices.len());
        assert_eq!(layout(&node(1, Some("0f1e-2d"), &[plain(0)])), (Some(Layout::New), 1));
        assert_eq!(layout(&node(1, None, &[plain(0)])), (Some(Layout::New), 1));
        assert_eq!(layout(&node(1, Some("0f1e-2d"), &[])), (Some(Layout::New), 0));
        assert_eq!(layout(&node(1, None, &[])), (None, 0));
        assert_eq!(layout(&old_node(1, &[plain(0)])), (Some(Layout::Old), 1));
        assert_eq!(layout(&old_node(1, &[plain(0), plain(1)])), (Some(Layout::Old), 2));
        // A device whose fields are all zero or empty.
        assert_eq!(layout(&old_node(1, &[Vec::new()])), (Some(Layout::Old), 1));
        for first in b"0123456789abcdefABCDEF" {
            let boot_id = format!("{}23e4567-e89b-12d3-a456-426614174000\n", char::from(*first));
            assert_eq!(layout(&node(0, Some(&boot_id), &[])), (Some(Layout::New), 0), "{boot_id:?}");
        }
    }

    #[test]
    fn the_reply_has_the_callers_layout() {
        let (old, new) = (old_node(0, &[device(0, |_| {})]), node(1, Some("b"), &[device(0, |_| {})]));
        let empty = node(2, None, &[]);
        let nodes = [old.clone(), new.clone(), empty.clone()];
        let layouts = |own: &Topology| -> Vec<Option<Layout>> {
            let reply = fields(global(&nodes, own)).unwrap();
            reply.into_iter().map(|node| Topology::parse(node.content).unwrap().layout).collect()
        };
        assert_eq!(layouts(&old), [Some(Layout::Old), Some(Layout::Old), None]);
        assert_eq!(layouts(&new), [Some(Layout::New), Some(Layout::New), None]);
        // Who has nothing to tell it by gets the layout of the first who has.
        assert_eq!(layouts(&empty), layouts(&old));
    }

    #[test]
    fn clients_of_the_old_layout_number_their_slices_themselves() {
        let sliced = old_node(0, &[device(0, |out| put_number(DEVICE_SLICE, 3, out))]);
        let reply = fields(global(std::slice::from_ref(&sliced), &sliced)).unwrap();
        let told = Topology::parse(reply[0].content.clone()).unwrap();
        assert_eq!(told, sliced);
    }

    #[test]
    fn a_negative_node_is_told_and_garbage_refused() {
        let negative = message(|out| put_number(NODE_ID, (-1_i64).cast_unsigned(), out));
        assert_eq!(Topology::parse(negative.into()).unwrap().node_id(), -1);
        assert!(Topology::parse(Bytes::from_static(b"\x1a\xff")).is_err());
        let broken_device = message(|out| put_content(NEW_DEVICES, b"\x0a\xff", out));
        assert!(Topology::parse(broken_device.into()).is_err());
    }
}
