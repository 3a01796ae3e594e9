package main

import (
	"context"
	"time"
)

// hop is the time that an additional server between a client and etcd may cost one writer, for each object.
const hop = 1300 * time.Microsecond

// phase is a figure that is measured on both sides.
type phase struct {
	name string
	unit string
	// turn measures once and returns the value in the unit.
	turn func(ctx context.Context, s *side, turn int) (float64, error)
	// more is set if a higher value is better.
	more bool
	// allowance is by how much the API server may be worse, in the unit.
	allowance float64
}

// phases returns the phases of the speed, in the order in which they run: objects are created first.
func (b *bench) phases() []phase {
	o := b.options
	alone := max(1, o.Shoots/oneWriterShare/o.Turns)
	return []phase{
		{name: "create, 1 writer", unit: "ms", allowance: hop.Seconds() * 1000, turn: func(ctx context.Context, s *side, _ int) (float64, error) {
			took, err := s.createMore(ctx, 1, alone)
			return milliseconds(took) / float64(alone), err
		}},
		{name: "create, many writers", unit: "objects/s", more: true, turn: func(ctx context.Context, s *side, turn int) (float64, error) {
			count := (o.Shoots - s.created) / (o.Turns - turn)
			took, err := s.createMore(ctx, o.Writers, count)
			return float64(count) / took.Seconds(), err
		}},
		{name: "list from the cache", unit: "ms", turn: timed(func(ctx context.Context, s *side) error {
			_, err := s.list(ctx)
			return err
		})},
		{name: "list in pages of 500", unit: "ms", turn: timed(func(ctx context.Context, s *side) error {
			_, err := s.listPages(ctx)
			return err
		})},
		{name: "events to all watchers", unit: "events/s", more: true, turn: func(ctx context.Context, s *side, turn int) (float64, error) {
			took, err := s.fanOut(ctx, o.Watchers, o.Changes, o.Writers, objectName(turn))
			return float64(o.Watchers*o.Changes) / took.Seconds(), err
		}},
	}
}

func timed(call func(context.Context, *side) error) func(context.Context, *side, int) (float64, error) {
	return func(ctx context.Context, s *side, _ int) (float64, error) {
		start := time.Now()
		err := call(ctx, s)
		return milliseconds(time.Since(start)), err
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// byTurns measures both sides alternately, so that other load on the machine affects both equally. It returns the
// values of each.
func (p phase) byTurns(ctx context.Context, sides [2]*side, turns int, profiler profiler) (measured [2][]float64, err error) {
	profile := profiler.begin(ctx, p.name)
	for turn := range turns {
		for position := range sides {
			index := (position + turn) % len(sides)
			value, err := p.turn(ctx, sides[index], turn)
			if err != nil {
				return measured, err
			}
			measured[index] = append(measured[index], value)
		}
	}
	return measured, profile.end()
}

// createMore creates further objects and returns the elapsed time.
func (s *side) createMore(ctx context.Context, writers, count int) (time.Duration, error) {
	first, start := s.created, time.Now()
	err := concurrently(ctx, writers, count, func(ctx context.Context, index int) error { return s.create(ctx, first+index) })
	s.created += count
	return time.Since(start), err
}
