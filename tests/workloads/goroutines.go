// Burns CPU time in goroutines: goroutines MILLISECONDS
package main

import (
	"os"
	"strconv"
	"sync"
	"time"
)

var spun [2]uint64

//go:noinline
func work(number int, end time.Time) {
	for time.Now().Before(end) {
		for i := uint64(0); i < 20000; i++ {
			spun[number] += i * i
		}
	}
}

//go:noinline
func descend(number, depth int, end time.Time) {
	if depth > 0 {
		descend(number, depth-1, end)
	} else {
		work(number, end)
	}
	spun[number]++
}

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	var all sync.WaitGroup
	for number := range spun {
		all.Add(1)
		go func(number int) {
			descend(number, 20, end)
			all.Done()
		}(number)
	}
	all.Wait()
}
