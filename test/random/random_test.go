package random

import (
	"slices"
	"testing"
)

func TestFrom(t *testing.T) {
	draw := func(data string) []int {
		generator := From([]byte(data))
		var numbers []int
		for range 6 {
			numbers = append(numbers, generator.IntN(4))
		}
		return numbers
	}
	first := draw("\x00\x01\x02\x03")
	if !slices.Equal(first[:4], []int{0, 1, 2, 3}) {
		t.Errorf("the bytes do not determine the result: %v", first)
	}
	if !slices.Equal(first, draw("\x00\x01\x02\x03")) {
		t.Error("the same bytes have different results")
	}
	if changed := draw("\x00\x02\x02\x03"); changed[1] != 2 || !slices.Equal(changed[2:], first[2:]) {
		t.Errorf("a change of one byte results in %v instead of %v", changed, first)
	}
	for range 100 {
		From(nil).IntN(3) // which terminates
	}
}
