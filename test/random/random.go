// Package random makes random values from the bytes that a fuzz test is given: each byte is one decision, so that a fuzzer can change
// one and keep the others.
package random

import "math/rand/v2"

// From returns a generator that uses up bytes, and goes on with pseudo-random numbers, always the same, when there are no more.
func From(data []byte) *rand.Rand {
	return rand.New(&source{data: data, rest: rand.NewPCG(1, 2)}) //nolint:gosec // it is to be the same each time
}

type source struct {
	data []byte
	rest *rand.PCG
}

// Uint64 returns a number of which every byte is the next one.
func (s *source) Uint64() uint64 {
	if len(s.data) == 0 {
		return s.rest.Uint64()
	}
	next := s.data[0]
	s.data = s.data[1:]
	return uint64(next) * 0x0101010101010101
}
