package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	for name, test := range map[string]struct {
		values []time.Duration
		count  int
		share  float64
		want   time.Duration
		ok     bool
	}{
		"median":                     {values, 5, 0.5, 3, true},
		"of an even number":          {values[:4], 4, 0.5, 2, true},
		"greatest":                   {values, 5, 0.99, 5, true},
		"all":                        {values, 5, 1, 5, true},
		"smallest":                   {values, 5, 0, 1, true},
		"missing ones are greater":   {values, 10, 0.5, 5, true},
		"it is among missing ones":   {values, 10, 0.6, 0, false},
		"p99 with one of 200 lost":   {make([]time.Duration, 199), 200, 0.99, 0, true},
		"p99 with three of 200 lost": {make([]time.Duration, 197), 200, 0.99, 0, false},
		"nothing":                    {nil, 0, 0.5, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := percentile(test.values, test.count, test.share); got != test.want || ok != test.ok {
				t.Errorf("got %d, %t, want %d, %t", got, ok, test.want, test.ok)
			}
		})
	}
}
