package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRunOfPass(t *testing.T) {
	var ran []string
	p := NewPass(time.Unix(1000, 0))
	step := func(name string, needed bool, err error) PassStep {
		return PassStep{Run: func(context.Context) error { ran = append(ran, name); return err }, Needed: needed}
	}
	ends := PassStep{Run: func(context.Context) error { ran = append(ran, "ends"); p.Over = true; return nil }}
	for name, test := range map[string]struct {
		steps     []PassStep
		ran, errs string
	}{
		"all":                             {[]PassStep{step("a", true, nil), step("b", false, nil)}, "a b", ""},
		"a failure does not end the pass": {[]PassStep{step("a", false, errors.New("x")), step("b", false, errors.New("y"))}, "a b", "x\ny"},
		"a failure of a needed step does": {[]PassStep{step("a", true, errors.New("x")), step("b", false, errors.New("y"))}, "a", "x"},
		"a step ends the pass":            {[]PassStep{ends, step("b", false, nil)}, "ends", ""},
	} {
		ran, p.Over = nil, false
		err := p.Run(t.Context(), test.steps)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(ran, strings.Fields(test.ran)) || text != test.errs {
			t.Errorf("%s: ran %q with the error %q, want %q and %q", name, ran, text, test.ran, test.errs)
		}
	}
}
