package snapshot

import (
	"fmt"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)

func object(kind Kind, epoch int, first, last int64, age time.Duration) Object {
	o := Object{Kind: kind, Epoch: epoch, First: first, Last: last, Created: now.Add(-age)}
	o.Key = o.key()
	return o
}

func kept(objects []Object, policy Policy) map[string]bool {
	keep := map[string]bool{}
	for _, o := range objects {
		keep[o.Key] = true
	}
	for _, o := range Garbage(objects, policy, now) {
		delete(keep, o.Key)
	}
	return keep
}

func TestGarbage(t *testing.T) {
	for name, test := range map[string]struct {
		policy Policy
		object Object
		others []Object
		keep   bool
	}{
		"only full, very old":       {object: object(KindFull, 1, 5, 5, 1000*day), keep: true},
		"replaced full, this hour":  {object: object(KindFull, 1, 5, 5, 10*time.Minute), others: []Object{object(KindFull, 1, 9, 9, 5*time.Minute)}, keep: true},
		"replaced full of its hour": {object: object(KindFull, 1, 5, 5, 3*hour+20*time.Minute), others: []Object{object(KindFull, 1, 9, 9, 3*hour+10*time.Minute)}},
		"last full of its hour":     {object: object(KindFull, 1, 5, 5, 3*hour), others: []Object{object(KindFull, 1, 9, 9, hour)}, keep: true},
		"last full of its day":      {object: object(KindFull, 1, 5, 5, 6*day), others: []Object{object(KindFull, 1, 9, 9, hour)}, keep: true},
		"last full of its week":     {object: object(KindFull, 1, 5, 5, 27*day), others: []Object{object(KindFull, 1, 9, 9, hour)}, keep: true},
		"full of an earlier week":   {object: object(KindFull, 1, 5, 5, 40*day), others: []Object{object(KindFull, 1, 9, 9, hour)}},
		"final":                     {object: object(KindFinal, 1, 5, 5, 40*day), others: []Object{object(KindFull, 1, 9, 9, hour)}},
		"newest full of an epoch":   {object: object(KindFull, 1, 5, 5, 400*day), others: []Object{object(KindFull, 2, 9, 9, hour)}, keep: true},
		"delta of the chain":        {object: object(KindDelta, 1, 6, 8, 20*day), others: []Object{object(KindFull, 1, 5, 5, 21*day)}, keep: true},
		"delta before the full":     {object: object(KindDelta, 1, 3, 5, 2*hour), others: []Object{object(KindFull, 1, 5, 5, hour)}},
		"delta of this hour":        {object: object(KindDelta, 1, 3, 5, 50*time.Minute), others: []Object{object(KindFull, 1, 5, 5, time.Minute)}, keep: true},
		"delta that is retained": {policy: Policy{DeltaRetention: 3 * hour}, object: object(KindDelta, 1, 3, 5, 2*hour),
			others: []Object{object(KindFull, 1, 5, 5, hour)}, keep: true},
		"delta without a full yet":        {object: object(KindDelta, 2, 3, 5, 2*hour), others: []Object{object(KindFull, 1, 5, 5, 3*hour)}, keep: true},
		"delta of an earlier epoch":       {object: object(KindDelta, 1, 6, 8, 2*hour), others: []Object{object(KindFull, 1, 5, 5, 3*hour), object(KindFull, 2, 9, 9, hour)}},
		"within the limit":                {policy: Policy{Limit: 2}, object: object(KindFull, 1, 5, 5, 99*day), others: []Object{object(KindFull, 1, 9, 9, hour)}, keep: true},
		"beyond the limit":                {policy: Policy{Limit: 1}, object: object(KindFull, 1, 5, 5, time.Minute), others: []Object{object(KindFull, 1, 9, 9, 0)}},
		"created in the future":           {object: object(KindFull, 1, 5, 5, -hour), others: []Object{object(KindFull, 1, 9, 9, 0)}, keep: true},
		"full with a delta of its chain":  {object: object(KindFull, 1, 5, 5, 50*day), others: []Object{object(KindDelta, 1, 6, 9, hour)}, keep: true},
		"delta that overlaps the newest":  {object: object(KindDelta, 1, 3, 7, 2*hour), others: []Object{object(KindFull, 1, 5, 5, hour)}, keep: true},
		"delta in an epoch without fulls": {object: object(KindDelta, 1, 3, 7, 9*day), keep: true},
	} {
		if got := kept(append(test.others, test.object), test.policy)[test.object.Key]; got != test.keep {
			t.Errorf("%s: kept is %t", name, got)
		}
	}
}

// TestGarbageOfAYear takes a full snapshot each hour and twelve delta snapshots between, and collects garbage each twelve hours of a year.
func TestGarbageOfAYear(t *testing.T) {
	begin := now
	defer func() { now = begin }()
	var objects []Object
	revision := int64(1)
	for h := range 365 * 24 {
		now = begin.Add(time.Duration(h) * hour)
		objects = append(objects, object(KindFull, 1, revision, revision, 0))
		for minute := range 12 {
			objects = append(objects, object(KindDelta, 1, revision+1, revision+10, -time.Duration(minute*5)*time.Minute))
			revision += 10
		}
		now = now.Add(59 * time.Minute)
		if h%12 != 11 {
			continue
		}
		keep := kept(objects, Policy{})
		var remaining []Object
		counts := map[string]int{}
		for _, o := range objects {
			if !keep[o.Key] {
				continue
			}
			remaining = append(remaining, o)
			counts[string(o.Kind)]++
		}
		objects = remaining
		chain := Chains(objects, 1)[0]
		if chain.Last != revision || chain.Missing != 0 {
			t.Fatalf("hour %d: the chain ends at %d instead of %d", h, chain.Last, revision)
		}
		// 25 hours, 7 days and 4 weeks before; the deltas of this hour and of the last one.
		if h > 24*60 && (counts["full"] < 25+6+2 || counts["full"] > 25+7+4) || counts["delta"] > 24 {
			t.Fatalf("hour %d: %v are kept", h, counts)
		}
	}
}

func TestChains(t *testing.T) {
	full := object(KindFull, 1, 10, 10, day)
	for name, test := range map[string]struct {
		deltas        []Object
		last, missing int64
	}{
		"none":             {nil, 10, 0},
		"contiguous":       {[]Object{object(KindDelta, 1, 11, 15, 0), object(KindDelta, 1, 16, 20, 0)}, 20, 0},
		"overlapping":      {[]Object{object(KindDelta, 1, 8, 15, 0), object(KindDelta, 1, 12, 20, 0)}, 20, 0},
		"gap at the begin": {[]Object{object(KindDelta, 1, 12, 15, 0)}, 10, 11},
		"gap":              {[]Object{object(KindDelta, 1, 11, 15, 0), object(KindDelta, 1, 17, 20, 0)}, 15, 16},
		"other epoch":      {[]Object{object(KindDelta, 2, 11, 15, 0)}, 10, 0},
		"before":           {[]Object{object(KindDelta, 1, 1, 9, 0)}, 10, 0},
	} {
		chains := Chains(append(test.deltas, full), 1)
		if len(chains) != 1 || chains[0].Last != test.last || chains[0].Missing != test.missing {
			t.Errorf("%s: %+v", name, chains)
		}
	}
}

func TestNames(t *testing.T) {
	for _, o := range []Object{object(KindFull, 1, 5, 5, 0), object(KindFinal, 99999999, 1_000_000_005, 1_000_000_005, day), object(KindDelta, 3, 1, 1<<60, 0)} {
		got, is := parseKey(o.Key)
		if !is || fmt.Sprint(got) != fmt.Sprint(o) {
			t.Errorf("%s is %+v, %t", o.Key, got, is)
		}
	}
	for _, key := range []string{"", "v1/epoch-00000001", "v2/x", "v1/00000001/full-5-5-1", object(KindDelta, 1, 5, 4, 0).Key, object(KindFull, 1, 5, 5, 0).Key + ".tmp"} {
		if o, is := parseKey(key); is {
			t.Errorf("%s is %+v", key, o)
		}
	}
}
