/* SPDX-License-Identifier: Apache-2.0 */
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>
int answer();
int main(int argc, char **argv)
{
	std::string mode = argc > 1 ? argv[1] : "", line;
	if (mode == "hello") std::cout << "hello " << answer() << "\n";
	if (mode == "stdin") while (std::getline(std::cin, line)) std::cout << line << "\n";
	if (mode == "env") { char text[4096]; std::cout << getenv("WORD") << " " << getcwd(text, sizeof(text)) << "\n"; }
	if (mode == "args") {
		for (int i = 2; i < argc; i++) std::cout << "[" << argv[i] << "]";
		std::cout << std::ifstream("data.txt").rdbuf();
	}
	if (mode == "signal") kill(getpid(), SIGKILL);
	if (mode == "exit") return 3;
	if (mode == "error") throw std::runtime_error("on purpose");
	if (mode == "timeout") for (volatile int i = 0;; i = i + 1) ;
	if (mode == "memory") for (std::vector<std::string> kept;;) kept.push_back(std::string(8 << 20, 'x'));
	if (mode == "fork") for (;;) fork();
	if (mode == "unicode") std::cout << "grüße 日本語 🎉\n";
	if (mode == "output") for (int i = 0; i < 16384; i++) std::cout << std::string(63, 'x') << "\n";
	if (mode == "sort") {
		std::vector<std::uint32_t> numbers(1000000);
		std::uint32_t x = 42;
		for (auto &n : numbers) n = x = x * 1664525u + 1013904223u;
		std::sort(numbers.begin(), numbers.end());
		std::cout << numbers[500000] << " " << numbers[999999] << "\n";
	}
}
