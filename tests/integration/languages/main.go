// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"syscall"
	"strings"
)

func main() {
	switch os.Args[1] {
	case "hello":
		fmt.Println("hello", answer())
	case "stdin":
		io.Copy(os.Stdout, os.Stdin)
	case "env":
		dir, _ := os.Getwd()
		fmt.Println(os.Getenv("WORD"), dir)
	case "args":
		for _, word := range os.Args[2:] {
			fmt.Print("[" + word + "]")
		}
		data, _ := os.ReadFile("data.txt")
		os.Stdout.Write(data)
	case "signal":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "exit":
		os.Exit(3)
	case "error":
		panic("on purpose")
	case "timeout":
		for {
		}
	case "memory":
		var kept [][]byte
		for {
			kept = append(kept, []byte(strings.Repeat("x", 8<<20)))
		}
	case "fork":
		for {
			exec.Command("sleep", "100").Start()
		}
	case "unicode":
		fmt.Println("grüße 日本語 🎉")
	case "output":
		for i := 0; i < 16384; i++ {
			fmt.Println(strings.Repeat("x", 63))
		}
	case "sort":
		numbers := make([]uint32, 1000000)
		x := uint32(42)
		for i := range numbers {
			x = x*1664525 + 1013904223
			numbers[i] = x
		}
		sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
		fmt.Println(numbers[500000], numbers[999999])
	}
}
