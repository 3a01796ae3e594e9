package flow

import "math/rand/v2"

// noise returns text that Brotli shortens by no more than a quarter.
func noise(seed string, size int) string {
	random := rand.New(rand.NewPCG(uint64(seed[0]), 1))
	text := make([]byte, size)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[random.IntN(64)]
	}
	return string(text)
}
