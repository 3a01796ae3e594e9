package restart

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for value, test := range map[string]struct {
		units []string
		self  bool
	}{
		"":                                {nil, false},
		"a":                               {[]string{"a.service"}, false},
		" a , b.timer,,a.service ":        {[]string{"a.service", "b.timer"}, false},
		"gardener-node-agent,a":           {[]string{"a.service"}, true},
		"gardener-node-agent.service":     {nil, true},
		"../../etc/passwd,a b,gardener-x": {[]string{"../../etc/passwd", "a b.service", "gardener-x.service"}, false}, // the caller refuses them
	} {
		units, self := parse(value)
		if !slices.Equal(units, test.units) || self != test.self {
			t.Errorf("%q: got %q %v", value, units, self)
		}
	}
}

func TestRemoval(t *testing.T) {
	const want = `[{"op":"test","path":"/metadata/annotations/worker.gardener.cloud~1restart-systemd-services","value":"a,b"},` +
		`{"op":"remove","path":"/metadata/annotations/worker.gardener.cloud~1restart-systemd-services"}]`
	if got := string(removal("a,b")); got != want {
		t.Errorf("got %s", got)
	}
}
