package agentdelay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// nodesOf parses "<name> <delay>, …".
func nodesOf(text string) []nodeDelay {
	var nodes []nodeDelay
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			name, delay, _ := strings.Cut(part, " ")
			nodes = append(nodes, nodeDelay{name, delay})
		}
	}
	return nodes
}

func textOf(nodes []nodeDelay) string {
	parts := make([]string, 0, len(nodes))
	for _, node := range nodes {
		parts = append(parts, strings.TrimSpace(node.name+" "+node.delay))
	}
	return strings.Join(parts, ", ")
}

func TestSpread(t *testing.T) {
	for name, test := range map[string]struct {
		nodes            string
		minimum, maximum time.Duration
		want             string
	}{
		"none":                {"", 0, 5 * time.Minute, ""},
		"one":                 {"a", 0, 5 * time.Minute, "a 0s"},
		"two":                 {"b, a", 0, 5 * time.Minute, "a 0s, b 2m30s"},
		"three":               {"c, a, b", 0, 5 * time.Minute, "a 0s, b 1m40s, c 3m20s"},
		"others are replaced": {"c 7s, a x, b 1m40s", 0, 5 * time.Minute, "a 0s, b 1m40s, c 3m20s"},
		"a minimum":           {"a, b, c, d", time.Minute, 2 * time.Minute, "a 1m0s, b 1m15s, c 1m30s, d 1m45s"},
		"no room":             {"a, b", time.Minute, time.Minute, "a 1m0s, b 1m0s"},
		"always zero":         {"a, b", 0, 0, "a 0s, b 0s"},
		"parts of a second":   {"a, b, c", 0, time.Second, "a 0s, b 333.333333ms, c 666.666666ms"},
		"sorted as text":      {"n-10, n-9, n-1", 0, 3 * time.Second, "n-1 0s, n-10 1s, n-9 2s"},
		"hours":               {"a, b", 0, 5 * time.Hour, "a 0s, b 2h30m0s"},
		"no overflow":         {"a, b, c, d", 0, math.MaxInt64, "a 0s, b 640511h56m49.213693951s, c 1281023h53m38.427387903s, d 1921535h50m27.641081855s"},
	} {
		t.Run(name, func(t *testing.T) {
			before := nodesOf(test.nodes)
			given := slices.Clone(before)
			if got := textOf(spread(given, test.minimum, test.maximum)); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if !slices.Equal(before, given) {
				t.Error("the input was changed")
			}
		})
	}
}

func TestKeep(t *testing.T) {
	for name, test := range map[string]struct{ nodes, want string }{
		"none":                    {"", ""},
		"the first ones":          {"b, a", "a 0s, b 2m30s"},
		"nothing to do":           {"a 0s, b 1m40s, c 3m20s", "a 0s, b 1m40s, c 3m20s"},
		"one joins":               {"a 0s, b 1m40s, c 3m20s, d", "a 0s, b 1m40s, c 3m20s, d 50s"},
		"whatever its name":       {"a, b 0s, c 1m40s, d 3m20s", "a 50s, b 0s, c 1m40s, d 3m20s"},
		"two join":                {"a 0s, b 1m40s, c 3m20s, e, d", "a 0s, b 1m40s, c 3m20s, d 50s, e 2m30s"},
		"half of them are new":    {"a 0s, b 2m30s, d, c", "a 0s, b 1m15s, c 2m30s, d 3m45s"},
		"the first place is free": {"a 1m40s, b 3m20s, c", "a 1m40s, b 3m20s, c 0s"},
		"one leaves":              {"a 0s, c 3m20s", "a 0s, c 3m20s"},
		"text of another form":    {"a 0s, b 100s, c 200s", "a 0s, b 100s, c 200s"},
		"no duration":             {"a 0s, b soon, c 3m20s", "a 0s, b 1m40s, c 3m20s"},
		"two are equal":           {"a 0s, b 0s, c 3m20s", "a 0s, b 1m40s, c 3m20s"},
		"beyond the bounds":       {"a 0s, b 5m, c 3m20s, d -1s, e 1m, f 2m", "a 0s, b 4m10s, c 3m20s, d 2m40s, e 1m0s, f 2m0s"},
		"most are new":            {"a 10s, b, c", "a 0s, b 1m40s, c 3m20s"},
		"all on one side": {
			"a 0s, b 1s, c 2s, d 3s, e 4s, f 5s, g 6s, h 7s, i 8s, j 59999ms",
			"a 0s, b 30s, c 1m0s, d 1m30s, e 2m0s, f 2m30s, g 3m0s, h 3m30s, i 4m0s, j 4m30s",
		},
		"even enough": {
			"a 0s, b 1s, c 2s, d 3s, e 4s, f 5s, g 6s, h 7s, i 8s, j 60s", "a 0s, b 1s, c 2s, d 3s, e 4s, f 5s, g 6s, h 7s, i 8s, j 60s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Values in another format are compared as text.
			want := strings.ReplaceAll(test.want, "e 1m0s, f 2m0s", "e 1m, f 2m")
			if got := textOf(keep(nodesOf(test.nodes), 0, 5*time.Minute)); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

func TestDiffering(t *testing.T) {
	got := textOf(differing(nodesOf("a 0s, b 60s, c"), nodesOf("a 0s, b 1m0s, c 2m0s")))
	if want := "b 1m0s, c 2m0s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// writes returns how many delays change while nodes join or leave.
func writes(t *testing.T, join, leave int, keepDelays bool) (most, total int) {
	t.Helper()
	assign := spread
	if keepDelays {
		assign = keep
	}
	nodes := assign(numbered(1000, 0), 0, 5*time.Minute)
	change := func(after []nodeDelay) {
		wanted := assign(after, 0, 5*time.Minute)
		count := len(differing(after, wanted))
		most, total, nodes = max(most, count), total+count, wanted
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range join {
		change(append(slices.Clone(nodes), nodeDelay{name: fmt.Sprintf("node-%04d-%x", random.IntN(1000), random.Int64())}))
	}
	for range leave {
		which := random.IntN(len(nodes))
		change(slices.Delete(slices.Clone(nodes), which, which+1))
	}
	return most, total
}

func numbered(count, from int) []nodeDelay {
	nodes := make([]nodeDelay, count)
	for i := range nodes {
		nodes[i].name = fmt.Sprintf("node-%04d", from+i)
	}
	return nodes
}

// TestWrites counts the annotations that change when nodes join or leave a cluster of 1,000 nodes.
func TestWrites(t *testing.T) {
	for name, test := range map[string]struct {
		join, leave         int
		keepDelays          bool
		wantMost, wantTotal int
	}{
		"one joins, by the letter":       {1, 0, false, 1000, 1000},
		"one joins, delays are kept":     {1, 0, true, 1, 1},
		"one leaves, by the letter":      {0, 1, false, 998, 998},
		"one leaves, delays are kept":    {0, 1, true, 0, 0},
		"two hundred join, kept":         {200, 0, true, 1, 200},
		"a hundred come and go, kept":    {100, 100, true, 1, 100},
		"half of them leave, and kept":   {0, 500, true, 0, 0},
		"a hundred come, by the letter":  {100, 0, false, 1099, 104_950},
		"a hundred leave, by the letter": {0, 100, false, 998, 94_850},
		"half of them leave":             {0, 500, false, 998, 374_252},
	} {
		t.Run(name, func(t *testing.T) {
			most, total := writes(t, test.join, test.leave, test.keepDelays)
			if most != test.wantMost || total != test.wantTotal {
				t.Errorf("at most %d at a time and %d together, want %d and %d", most, total, test.wantMost, test.wantTotal)
			}
		})
	}
}

// FuzzKeep checks, for any annotations, that each node gets a valid delay, that no gap is too wide, and that a second reconcile
// changes nothing.
func FuzzKeep(f *testing.F) {
	f.Add("a 0s, b 1m40s, c", int64(0), int64(300))
	f.Add("a 9999999h, b -1ns, c 5m, d 1e9s", int64(10), int64(11))
	f.Fuzz(func(t *testing.T, text string, minimum, span int64) {
		if minimum < 0 || minimum > 1<<40 || span <= 0 || span > 1<<40 || len(text) > 1000 {
			t.Skip()
		}
		low, high := time.Duration(minimum), time.Duration(minimum+span*1_000_000)
		seen := map[string]bool{}
		nodes := slices.DeleteFunc(nodesOf(text), func(n nodeDelay) bool { defer func() { seen[n.name] = true }(); return seen[n.name] })
		result := keep(nodes, low, high)
		if len(result) != len(nodes) {
			t.Fatalf("%d nodes have become %d", len(nodes), len(result))
		}
		for _, node := range result {
			delay, err := time.ParseDuration(node.delay)
			if err != nil || delay < low || delay >= high {
				t.Fatalf("node %q has the delay %q, %v", node.name, node.delay, err)
			}
		}
		if again := keep(result, low, high); !slices.Equal(again, result) {
			t.Fatalf("a second reconcile results in\n%s for\n%s", textOf(again), textOf(result))
		}
	})
}
