use bpfprof::unwind::compile;
use std::os::unix::fs::FileExt as _;
fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap();
    if let Some(rounds) = args.next() {
        // mutate
        let (from, len): (u64, u64) = (args.next().unwrap().parse().unwrap(), args.next().unwrap().parse().unwrap());
        let sound = std::fs::read(&name).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&sound, 0).unwrap();
        let mut r = 88172645463325252u64;
        let mut next = move || { r ^= r << 13; r ^= r >> 7; r ^= r << 17; r };
        let (mut ok, mut most) = (0, 0);
        let mut slow = std::time::Duration::ZERO;
        for round in 0..rounds.parse::<u64>().unwrap() {
            let mut undo = vec![];
            for _ in 0..1 + next() % 4 {
                let at = from + next() % len;
                let b: Vec<u8> = match next() % 4 { 0 => vec![next() as u8], 1 => next().to_le_bytes().to_vec(), 2 => [0u64,1,u64::MAX,i64::MAX as u64,1<<40][(next()%5) as usize].to_le_bytes().to_vec(), _ => [0u32,u32::MAX,i32::MAX as u32,4][(next()%4) as usize].to_le_bytes().to_vec() };
                let b = b[..b.len().min((from + len - at) as usize)].to_vec();
                file.write_all_at(&b, at).unwrap();
                undo.push((at, b.len()));
            }
            let t = std::time::Instant::now();
            match compile(&file) { Ok(t) => { ok += 1; most = most.max(t.row_count()); } Err(_) => {} }
            slow = slow.max(t.elapsed());
            for (at, l) in undo { file.write_all_at(&sound[at as usize..at as usize + l], at).unwrap(); }
            let _ = round;
        }
        println!("{ok} ok, most rows {most}, slowest {slow:?}");
        return;
    }
    let file = std::fs::File::open(&name).unwrap();
    match compile(&file) {
        Err(e) => println!("error {e}"),
        Ok(table) => for page in table.pages() { for row in table.rows(*page) { let r = row.rule(); println!("{:x} {:?} {:?} {:?}", (u64::from(page.number) << 16) + u64::from(row.place()), r.cfa, r.fp, r.ra); } },
    }
}
