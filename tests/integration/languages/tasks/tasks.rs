// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

fn gcd(a: u64, b: u64) -> u64 { if b == 0 { a } else { gcd(b, a % b) } }
fn yes(truth: bool) -> &'static str { if truth { "yes" } else { "no" } }
fn is_prime(n: u64) -> bool { n > 1 && (2..n).all(|d| n % d != 0) }
fn collatz(n: u64) -> u64 { if n == 1 { 0 } else { 1 + collatz(if n % 2 == 0 { n / 2 } else { 3 * n + 1 }) } }
fn hanoi(n: u64) -> u64 { if n == 0 { 0 } else { 2 * hanoi(n - 1) + 1 } }
fn choose(n: u64, k: u64) -> u64 { if k == 0 || k == n { 1 } else { choose(n - 1, k - 1) + choose(n - 1, k) } }
fn backwards(text: &str) -> String { text.chars().rev().collect() }
fn join<T: ToString>(list: impl Iterator<Item = T>) -> String { list.map(|x| x.to_string()).collect::<Vec<_>>().join(" ") }

fn letters(text: &str) -> Vec<char> {
    let mut list: Vec<char> = text.chars().collect();
    list.sort();
    list
}

fn factor(mut n: u64) -> u64 {
    let mut p = 2;
    while p * p <= n {
        if n % p == 0 { n /= p } else { p += 1 }
    }
    n
}

fn frequent(text: &str) -> &str {
    let mut counts = HashMap::new();
    for word in text.split(' ') {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|&(_, n)| n).unwrap().0
}

fn caesar(text: &str, by: u8) -> String {
    text.bytes()
        .map(|c| match c {
            b'a'..=b'z' => (c - b'a' + by) % 26 + b'a',
            b'A'..=b'Z' => (c - b'A' + by) % 26 + b'A',
            _ => c,
        } as char)
        .collect()
}

fn roman(mut n: usize) -> String {
    let words = "M CM D CD C XC L XL X IX V IV I".split(' ');
    let values = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1];
    values.iter().zip(words).map(|(value, word)| {
        let times = n / value;
        n %= value;
        word.repeat(times)
    }).collect()
}

fn subarray(values: &[i64]) -> i64 {
    let (mut best, mut here) = (values[0], 0);
    for &value in values {
        here = value.max(here + value);
        best = best.max(here);
    }
    best
}

fn is_balanced(text: &str) -> bool {
    let mut stack = Vec::new();
    for c in text.chars() {
        match c {
            '(' => stack.push(')'),
            '[' => stack.push(']'),
            '{' => stack.push('}'),
            _ => if stack.pop() != Some(c) { return false },
        }
    }
    stack.is_empty()
}

fn runs(text: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let next = rest.trim_start_matches(c);
        result += &format!("{}{}", c, rest.len() - next.len());
        rest = next;
    }
    result
}

fn fizzbuzz(n: u64) -> String {
    match (n % 3, n % 5) {
        (0, 0) => "FizzBuzz".to_string(),
        (0, _) => "Fizz".to_string(),
        (_, 0) => "Buzz".to_string(),
        _ => n.to_string(),
    }
}

fn main() {
    let mut values = [5, 3, 9, 1, 7];
    let m = [[1, 2], [3, 4]];
    println!("sum {}", (1..=100).sum::<u64>());
    println!("factorial {}", (1..=10).product::<u64>());
    println!("fibonacci {}", (0..50).fold((0u64, 1u64), |(a, b), _| (b, a + b)).0);
    println!("gcd {}", gcd(1071, 462));
    println!("lcm {}", 21 * 6 / gcd(21, 6));
    println!("primes {}", (0..1000).filter(|&n| is_prime(n)).count());
    println!("factor {}", factor(13195));
    println!("collatz {}", collatz(27));
    println!("digits {}", 2u64.pow(15).to_string().chars().map(|c| c.to_digit(10).unwrap()).sum::<u32>());
    println!("reverse {}", backwards("stressed"));
    println!("palindrome {}", yes(backwards("racecar") == "racecar"));
    println!("vowels {}", "the quick brown fox".chars().filter(|&c| "aeiou".contains(c)).count());
    println!("frequent {}", frequent("one two three two one two"));
    println!("caesar {}", caesar("Hello, World", 3));
    println!("binary {:b}", 37);
    println!("hex {:x}", 255);
    values.sort();
    println!("sort {}", join(values.iter()));
    println!("search {}", values.binary_search(&7).unwrap());
    println!("powmod {}", (0..200).fold(1, |p, _| p * 3 % 13));
    println!("matrix {}", join((0..4).map(|i| m[i / 2][0] * m[0][i % 2] + m[i / 2][1] * m[1][i % 2])));
    println!("pascal {}", join((0..=5).map(|k| choose(5, k))));
    println!("roman {}", roman(1994));
    println!("anagram {}", yes(letters("listen") == letters("silent")));
    println!("subarray {}", subarray(&[-2, 1, -3, 4, -1, 2, 1, -5, 4]));
    println!("brackets {}", yes(is_balanced("{[()]}(")));
    println!("hanoi {}", hanoi(10));
    println!("perfect {}", join((2..500u64).filter(|&n| (1..n).filter(|d| n % d == 0).sum::<u64>() == n)));
    println!("fizzbuzz {}", join((1..=15).map(fizzbuzz)));
    println!("runs {}", runs("aaabbc"));
    println!("leap {}", (1900..=2000).filter(|y| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)).count());
}
