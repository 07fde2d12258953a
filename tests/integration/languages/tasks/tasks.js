// SPDX-License-Identifier: Apache-2.0
const between = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const total = (list) => list.reduce((a, b) => a + b, 0);
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
const yes = (truth) => (truth ? 'yes' : 'no');
const isPrime = (n) => between(2, n - 1).every((d) => n % d);
const collatz = (n) => (n === 1 ? 0 : 1 + collatz(n % 2 ? 3 * n + 1 : n / 2));
const hanoi = (n) => (n ? 2 * hanoi(n - 1) + 1 : 0);
const choose = (n, k) => (k === 0 || k === n ? 1 : choose(n - 1, k - 1) + choose(n - 1, k));

function fibonacci(n) {
  let [a, b] = [0, 1];
  for (let i = 0; i < n; i++) [a, b] = [b, a + b];
  return a;
}

function factor(n) {
  let p = 2;
  while (p * p <= n) if (n % p) p++; else n /= p;
  return n;
}

function frequent(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}

function shift(letter, by) {
  const base = letter < 'a' ? 65 : 97;
  return String.fromCharCode((letter.charCodeAt(0) - base + by) % 26 + base);
}

function search(values, wanted) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

function roman(n) {
  const letters = 'M CM D CD C XC L XL X IX V IV I'.split(' ');
  return [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1].map((value, i) => {
    const times = Math.floor(n / value);
    n %= value;
    return letters[i].repeat(times);
  }).join('');
}

function subarray(values) {
  let [best, here] = [-Infinity, 0];
  for (const value of values) best = Math.max(best, here = Math.max(value, here + value));
  return best;
}

function isBalanced(text) {
  const stack = [];
  for (const c of text) if ('([{'.includes(c)) stack.push(c); else if (!['()', '[]', '{}'].includes(stack.pop() + c)) return false;
  return !stack.length;
}

const square = (a) => [0, 1].flatMap((i) => [0, 1].map((j) => a[i][0] * a[0][j] + a[i][1] * a[1][j]));
const letters = (text) => [...text].sort().join('');

console.log('sum', total(between(1, 100)));
console.log('factorial', between(1, 10).reduce((a, b) => a * b));
console.log('fibonacci', fibonacci(50));
console.log('gcd', gcd(1071, 462));
console.log('lcm', 21 * 6 / gcd(21, 6));
console.log('primes', between(2, 999).filter(isPrime).length);
console.log('factor', factor(13195));
console.log('collatz', collatz(27));
console.log('digits', total([...String(2 ** 15)].map(Number)));
console.log('reverse', [...'stressed'].reverse().join(''));
console.log('palindrome', yes('racecar' === [...'racecar'].reverse().join('')));
console.log('vowels', 'the quick brown fox'.match(/[aeiou]/g).length);
console.log('frequent', frequent('one two three two one two'.split(' ')));
console.log('caesar', 'Hello, World'.replace(/[A-Za-z]/g, (c) => shift(c, 3)));
console.log('binary', (37).toString(2));
console.log('hex', (255).toString(16));
console.log('sort', ...[5, 3, 9, 1, 7].sort((a, b) => a - b));
console.log('search', search([1, 3, 5, 7, 9], 7));
console.log('powmod', between(1, 200).reduce((a) => a * 3 % 13, 1));
console.log('matrix', ...square([[1, 2], [3, 4]]));
console.log('pascal', ...between(0, 5).map((k) => choose(5, k)));
console.log('roman', roman(1994));
console.log('anagram', yes(letters('listen') === letters('silent')));
console.log('subarray', subarray([-2, 1, -3, 4, -1, 2, 1, -5, 4]));
console.log('brackets', yes(isBalanced('{[()]}(')));
console.log('hanoi', hanoi(10));
console.log('perfect', ...between(2, 499).filter((n) => total(between(1, n - 1).filter((d) => n % d === 0)) === n));
console.log('fizzbuzz', ...between(1, 15).map((n) => (n % 3 ? '' : 'Fizz') + (n % 5 ? '' : 'Buzz') || n));
console.log('runs', 'aaabbc'.replace(/(.)\1*/g, (run, c) => c + run.length));
console.log('leap', between(1900, 2000).filter((y) => y % 4 === 0 && (y % 100 || y % 400 === 0)).length);
