// Package random makes random values from the input bytes of a fuzz test: each byte is one decision, so that a
// fuzzer can change one decision and keep the others.
package random

import "math/rand/v2"

// From returns a generator that consumes the bytes, and then continues with a fixed sequence of pseudo-random
// numbers.
func From(data []byte) *rand.Rand {
	return rand.New(&source{data: data, rest: rand.NewPCG(1, 2)}) //nolint:gosec // must be reproducible
}

type source struct {
	data []byte
	rest *rand.PCG
}

// Uint64 returns a number in which every byte is the next input byte.
func (s *source) Uint64() uint64 {
	if len(s.data) == 0 {
		return s.rest.Uint64()
	}
	next := s.data[0]
	s.data = s.data[1:]
	return uint64(next) * 0x0101010101010101
}
