//! Git's deltas. A delta describes a target by copy instructions (ranges of a base) and insert
//! instructions (new bytes). See git's `gitformat-pack`, "Deltified representation".
//!
//! The encoder divides the base into blocks of 16 bytes and indexes them by hash. Where 16 bytes of
//! the target equal a block of the base, it extends the match in both directions and copies it. All
//! other bytes of the target are inserted.

use std::ops::Range;

/// Length of a block in bytes. Shorter matches are not worth a copy instruction.
const BLOCK: usize = 16;
/// Maximum number of blocks with equal hashes that are compared, so that a repetitive base does not
/// take quadratic time.
const TRIES: usize = 24;
const LONGEST_COPY: usize = 0xff_ffff;
const LONGEST_INSERT: usize = 127;

pub(super) struct Index {
    heads: Vec<u32>,
    before: Vec<u32>,
    mask: usize,
}

impl Index {
    pub(super) fn new(base: &[u8]) -> Self {
        let blocks = base.len() / BLOCK;
        let size = (blocks + 1).next_power_of_two();
        let mut index = Self { heads: vec![0; size], before: vec![0; blocks], mask: size - 1 };
        // Backwards, so that among equal blocks the first one in the base is tried first.
        for block in (0..blocks).rev() {
            let slot = hash(&base[block * BLOCK..]) & index.mask;
            index.before[block] = index.heads[slot];
            index.heads[slot] = block as u32 + 1;
        }
        index
    }

    /// Whether the base contains more than half of 16 samples of `target`.
    pub(super) fn has_much_of(&self, base: &[u8], target: &[u8]) -> bool {
        const PLACES: usize = 16;
        // Length of a sample. If the base contains a sample, the sample includes a complete block
        // of the base.
        const STRETCH: usize = 2 * BLOCK;
        let Some(last) = target.len().checked_sub(STRETCH) else { return false };
        let is_there = |at: &usize| {
            (*at..at + BLOCK).any(|at| {
                let text = &target[at..at + BLOCK];
                self.candidates(text).any(|from| base[from..from + BLOCK] == *text)
            })
        };
        (0..PLACES).map(|n| last * n / PLACES).filter(is_there).count() > PLACES / 2
    }

    fn candidates(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let mut next = self.heads[hash(text) & self.mask];
        std::iter::from_fn(move || {
            let block = next.checked_sub(1)? as usize;
            next = self.before[block];
            Some(block * BLOCK)
        })
        .take(TRIES)
    }
}

fn hash(text: &[u8]) -> usize {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&text[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mixed =
        word(0).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word(8).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20) as usize
}

pub(super) fn encode(base: &[u8], index: &Index, target: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut delta = Delta { out: Vec::with_capacity(limit.min(4096)), limit };
    size(&mut delta.out, base.len());
    size(&mut delta.out, target.len());
    let mut at = 0;
    // Start of the bytes in the target that no instruction covers yet.
    let mut open = 0;
    while at + BLOCK <= target.len() {
        match longest(base, index, target, open..at) {
            Some((from, to)) => {
                delta.insert(&target[open..to.start])?;
                delta.copy(from, to.len())?;
                at = to.end;
                open = at;
            }
            None => at += 1,
        }
    }
    delta.insert(&target[open..])?;
    Some(delta.out)
}

/// Applies a delta and appends the result to `out`. Returns `None` if the delta is invalid or its
/// result is longer than `longest`.
pub(super) fn apply(base: &[u8], mut delta: &[u8], longest: u64, out: &mut Vec<u8>) -> Option<()> {
    if read_size(&mut delta)? != base.len() {
        return None;
    }
    let length = read_size(&mut delta).filter(|length| *length as u64 <= longest)?;
    let end = out.len().checked_add(length)?;
    // Reserves at most the length of base and delta together. A longer result is repetitive or
    // forged, and its memory grows as bytes are appended.
    out.reserve(length.min(base.len() + delta.len()));
    while let Some((mark, rest)) = delta.split_first() {
        delta = rest;
        if mark & 0x80 == 0 {
            let (text, rest) = delta.split_at_checked(usize::from(*mark)).filter(|_| *mark > 0)?;
            out.extend_from_slice(text);
            delta = rest;
            continue;
        }
        let mut number = |bits: Range<u8>| {
            let mut number = 0;
            for (place, bit) in bits.enumerate() {
                if mark & (1 << bit) != 0 {
                    let (byte, rest) = delta.split_first()?;
                    number |= usize::from(*byte) << (8 * place);
                    delta = rest;
                }
            }
            Some(number)
        };
        let from = number(0..4)?;
        let copied = match number(4..7)? {
            0 => 0x1_0000,
            copied => copied,
        };
        out.extend_from_slice(base.get(from..from.checked_add(copied)?)?);
        if out.len() > end {
            return None;
        }
    }
    (out.len() == end).then_some(())
}

pub(super) fn length_of(mut delta: &[u8]) -> Option<u64> {
    read_size(&mut delta)?;
    read_size(&mut delta).map(|length| length as u64)
}

fn read_size(delta: &mut &[u8]) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0);
    loop {
        let (byte, rest) = delta.split_first()?;
        *delta = rest;
        let part = usize::from(byte & 0x7f);
        // Fails if the size does not fit into `usize`.
        size |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        shift += 7;
        if *byte < 0x80 {
            return Some(size);
        }
    }
}

pub(super) fn copy_of(base: usize, stretch: Range<usize>) -> Vec<u8> {
    let mut delta = Delta { out: Vec::with_capacity(16), limit: usize::MAX };
    size(&mut delta.out, base);
    size(&mut delta.out, stretch.len());
    let _ = delta.copy(stretch.start, stretch.len());
    delta.out
}

/// Returns the longest match that includes the end of `open`: its offset in the base and its range
/// in the target. `open` is the range of the target that no instruction covers yet, so a match may
/// extend back into it.
fn longest(
    base: &[u8],
    index: &Index,
    target: &[u8],
    open: Range<usize>,
) -> Option<(usize, Range<usize>)> {
    let at = open.end;
    let mut best: Option<(usize, Range<usize>)> = None;
    for from in index.candidates(&target[at..]) {
        let forward = shared(&base[from..], &target[at..]);
        if forward < BLOCK {
            continue;
        }
        let backward = base[..from]
            .iter()
            .rev()
            .zip(target[open.start..at].iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let found = (from - backward, at - backward..at + forward);
        if best.as_ref().is_none_or(|(_, best)| found.1.len() > best.len()) {
            let whole = found.1.end == target.len();
            best = Some(found);
            if whole {
                break;
            }
        }
    }
    best
}

fn shared(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    // Compares chunks first, which is much faster than comparing single bytes.
    const PIECE: usize = 32;
    let pieces = a.chunks_exact(PIECE).zip(b.chunks_exact(PIECE)).take_while(|(a, b)| a == b);
    let whole = pieces.count() * PIECE;
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

struct Delta {
    out: Vec<u8>,
    limit: usize,
}

impl Delta {
    fn insert(&mut self, text: &[u8]) -> Option<()> {
        for piece in text.chunks(LONGEST_INSERT) {
            self.out.push(piece.len() as u8);
            self.out.extend_from_slice(piece);
        }
        self.fits()
    }

    fn copy(&mut self, mut from: usize, mut length: usize) -> Option<()> {
        while length > 0 {
            let part = length.min(LONGEST_COPY);
            let place = self.out.len();
            self.out.push(0x80);
            let mut mark = 0x80;
            for n in 0..4 {
                let byte = (from >> (8 * n)) as u8;
                if byte != 0 {
                    mark |= 1 << n;
                    self.out.push(byte);
                }
            }
            // A length of 65536 is encoded without length bytes.
            if part != 0x1_0000 {
                for n in 0..3 {
                    let byte = (part >> (8 * n)) as u8;
                    if byte != 0 {
                        mark |= 0x10 << n;
                        self.out.push(byte);
                    }
                }
            }
            self.out[place] = mark;
            from += part;
            length -= part;
        }
        self.fits()
    }

    fn fits(&self) -> Option<()> {
        (self.out.len() < self.limit).then_some(())
    }
}

fn size(out: &mut Vec<u8>, mut size: usize) {
    loop {
        let low = (size & 0x7f) as u8;
        size >>= 7;
        if size == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(base: &[u8], target: &[u8]) -> usize {
        let delta = encode(base, &Index::new(base), target, usize::MAX).unwrap();
        let mut made = Vec::new();
        apply(base, &delta, target.len() as u64, &mut made).unwrap();
        assert_eq!(made, target);
        delta.len()
    }

    #[test]
    fn small_change_yields_a_small_delta() {
        let base: Vec<u8> =
            (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut target = base.clone();
        target.splice(500_000..500_010, *b"something else entirely");
        assert!(round_trip(&base, &target) < 80);
        assert!(round_trip(&base, &base) < 40);
        round_trip(&base, b"");
        round_trip(b"", &base[..1000]);
        // Lengths around 65536, which is encoded without length bytes.
        for length in [0xffff, 0x1_0000, 0x1_0001, 0x2_0000] {
            assert!(round_trip(&base, &base[7..7 + length]) < 16);
        }
    }

    #[test]
    fn repetitive_base_is_encoded_quickly() {
        let base = vec![b'a'; 1 << 20];
        let mut target = base.clone();
        target[1 << 19] = b'b';
        assert!(round_trip(&base, &target) < 200);
        let noise: Vec<u8> =
            (0..1 << 18).map(|n: u32| if n.is_multiple_of(33) { b'b' } else { b'a' }).collect();
        round_trip(&base, &noise);
    }

    #[test]
    fn delta_length_that_overflows_is_rejected() {
        let huge = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
        assert_eq!(read_size(&mut &huge[..]), None);
        let delta = [&[0][..], &huge].concat();
        assert!(apply(b"", &delta, 1 << 20, &mut Vec::new()).is_none());
        assert_eq!(length_of(&delta), None);
        assert_eq!(read_size(&mut &[0xff, 0x7f][..]), Some(0x3fff));
    }

    #[test]
    fn encoder_returns_no_delta_longer_than_the_limit() {
        assert!(encode(b"", &Index::new(b""), &[7; 100], 50).is_none());
    }

    proptest! {
        #[test]
        fn delta_decoder_does_not_panic_on_malformed_input(base in any::<Vec<u8>>(), delta in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            let _ = apply(&base, &delta, 1 << 30, &mut out);
            let mut headed = Vec::new();
            size(&mut headed, base.len());
            headed.extend(&delta);
            let _ = apply(&base, &headed, 1 << 30, &mut out);
        }

        #[test]
        fn deltas_of_generated_edits_round_trip(
            base in prop::collection::vec(0..4_u8, 0..3000),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..200_usize, prop::collection::vec(0..4_u8, 0..200)), 0..6),
        ) {
            let mut target = base.clone();
            for (at, cut, new) in edits {
                let at = at.index(target.len() + 1);
                let end = (at + cut).min(target.len());
                target.splice(at..end, new);
            }
            round_trip(&base, &target);
        }
    }
}
