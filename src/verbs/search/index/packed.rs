//! Compressed sections, numbers and flags, of which the search index is made. All of them may be
//! read from a damaged or planted file.

use std::ops::Range;

/// Maximum length of a section. A longer section was not written by stvc.
const MAX_LENGTH: usize = 256 << 20;

/// A compressed sequence of bytes.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    pub length: usize,
    pub bytes: Vec<u8>,
}

impl Packed {
    pub fn of(bytes: &[u8]) -> Self {
        // Compression fails only if there is not enough memory. Such a section is not readable.
        let packed = zstd::bulk::compress(bytes, 1).unwrap_or_default();
        Self { length: bytes.len(), bytes: packed }
    }

    pub fn of_numbers(numbers: &[u32]) -> Self {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Self::of(&bytes)
    }

    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.length > MAX_LENGTH {
            return None;
        }
        let bytes = zstd::bulk::decompress(&self.bytes, self.length).ok()?;
        (bytes.len() == self.length).then_some(bytes)
    }

    pub fn numbers(&self) -> Option<Vec<u32>> {
        let bytes = self.bytes()?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        rest.is_empty().then(|| numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }
}

/// Appends a number in groups of seven bits, the lowest first.
pub fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number of [`put_number`] and removes it from `bytes`.
pub fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A set of numbers that are below a limit.
#[derive(Clone, Debug, Default)]
pub struct Flags(Vec<u64>);

impl Flags {
    /// Returns an empty set of numbers below `end`.
    pub fn below(end: usize) -> Self {
        Self(vec![0; end.div_ceil(64)])
    }

    /// Adds a number. Returns whether it was not in the set before.
    pub fn insert(&mut self, number: usize) -> bool {
        let Some(word) = self.0.get_mut(number / 64) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub fn insert_all(&mut self, numbers: Range<usize>) {
        for number in numbers {
            self.insert(number);
        }
    }

    pub fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn intersect(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    pub fn unite(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub fn grow(&mut self, end: usize) {
        self.0.resize(end.div_ceil(64), 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(numbers: Vec<u32>) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put_number(&mut bytes, *number));
            let mut rest = &bytes[..];
            for number in &numbers {
                prop_assert_eq!(take_number(&mut rest), Some(*number));
            }
            prop_assert_eq!(take_number(&mut rest), None);
            prop_assert_eq!(Packed::of_numbers(&numbers).numbers(), Some(numbers));
        }
    }
}
