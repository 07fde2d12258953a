// SPDX-License-Identifier: Apache-2.0
mod util;
use std::io::{Read, Write};
fn main() {
    let mode = std::env::args().nth(1).unwrap();
    match mode.as_str() {
        "hello" => println!("hello {}", util::answer()),
        "stdin" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).unwrap();
            std::io::stdout().write_all(&text).unwrap();
        }
        "env" => println!("{} {}", std::env::var("WORD").unwrap(), std::env::current_dir().unwrap().display()),
        "args" => {
            for word in std::env::args().skip(2) { print!("[{}]", word) }
            print!("{}", std::fs::read_to_string("data.txt").unwrap());
        }
        "signal" => { let _ = std::process::Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status(); }
        "exit" => std::process::exit(3),
        "error" => panic!("on purpose"),
        "timeout" => loop { std::hint::spin_loop() },
        "memory" => {
            let mut kept = Vec::new();
            loop { kept.push(vec![b'x'; 8 << 20]); }
        }
        "fork" => loop { let _ = std::process::Command::new("sleep").arg("100").spawn(); },
        "unicode" => println!("grüße 日本語 🎉"),
        "output" => for _ in 0..16384 { println!("{}", "x".repeat(63)) },
        "sort" => {
            let mut x: u32 = 42;
            let mut numbers: Vec<u32> = (0..1000000).map(|_| { x = x.wrapping_mul(1664525).wrapping_add(1013904223); x }).collect();
            numbers.sort();
            println!("{} {}", numbers[500000], numbers[999999]);
        }
        _ => {}
    }
}
