//! Names from the maps that processes write (`/tmp/perf-PID.map`): later lines replace earlier ones whose memory they use again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use crate::processes::{MAX_LINE, entry};
use crate::types::UserAddress;

/// Longest map that is read, in bytes. A large JVM writes some ten megabytes.
const MAX_MAP: u64 = 512 << 20;

/// The last name that the map gives each of these sorted addresses. The map itself is not kept: it can be long, and few addresses are asked for.
pub(super) fn names(file: &File, addresses: &[UserAddress]) -> BTreeMap<UserAddress, String> {
    let mut named = BTreeMap::new();
    let mut reader = BufReader::with_capacity(1 << 16, file.take(MAX_MAP));
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_LINE as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return named,
            Ok(_) => {}
        }
        let cut = line.last() != Some(&b'\n');
        if let Some((range, name)) = entry(&line) {
            let first = addresses.partition_point(|address| address.0 < range.start);
            for &address in addresses[first..].iter().take_while(|address| address.0 < range.end) {
                named.insert(address, name.clone());
            }
        }
        if cut && reader.skip_until(b'\n').is_err() {
            return named;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};

    fn named(map: &[u8], addresses: &[u64]) -> Vec<Option<String>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(map).unwrap();
        file.rewind().unwrap();
        let addresses: Vec<UserAddress> = addresses.iter().copied().map(UserAddress).collect();
        let names = names(&file, &addresses);
        addresses.iter().map(|address| names.get(address).cloned()).collect()
    }

    #[test]
    fn the_last_line_that_covers_an_address_names_it() {
        let map = b"1000 20 JS:*first a.js:1:2\n0x1010 10 second\n2000 10 third\n";
        let names = named(map, &[0xfff, 0x1000, 0x1010, 0x1020, 0x200f]);
        let expected = [None, Some("JS:*first a.js:1:2"), Some("second"), None, Some("third")];
        assert_eq!(names, expected.map(|name| name.map(String::from)));
    }

    #[test]
    fn lines_that_make_no_sense_are_passed_over() {
        let mut map = b"\nx y z\n1000\n1000 10\nffffffffffffffff 10 wraps\n".to_vec();
        map.extend(b"3000 10 ".iter().chain(&[b'n'; 10_000]));
        map.extend(b"\n1000 10 \xff\x1b[0m\n4000 10 no end");
        let names = named(&map, &[0x1000, 0x3000, 0x4000]);
        assert_eq!(names[0].as_deref(), Some("\u{fffd}\u{1b}[0m"));
        assert!(names[1].as_ref().is_some_and(|name| name.len() < 5000));
        assert_eq!(names[2].as_deref(), Some("no end"));
    }
}
