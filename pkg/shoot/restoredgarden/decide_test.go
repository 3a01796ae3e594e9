package restoredgarden

import (
	"reflect"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	left, deleted := &Record{Left, 12, false}, &Record{Deleted, 12, false}
	changed, back, again := &Record{Changed, 12, true}, &Record{Left, 12, true}, &Record{Deleted, 12, true}
	for name, test := range map[string]struct {
		facts Facts
		want  Decision
		hold  string
	}{
		"a new Shoot":                     {facts: Facts{Generation: 1}},
		"reconciled in this generation":   {facts: Facts{Generation: 12, Emitted: 12}},
		"changed since then":              {facts: Facts{Generation: 13, Emitted: 12}},
		"reconciled in a later one":       {facts: Facts{Generation: 9, Emitted: 12}, want: Decision{Record: changed}, hold: "generation 12, and the garden shows the generation 9"},
		"recognized before":               {facts: Facts{Generation: 9, Emitted: 12, Record: changed}, want: Decision{Record: changed}, hold: "accept-earlier-state=12"},
		"edited until it has caught up":   {facts: Facts{Generation: 14, Emitted: 12, Record: changed}, want: Decision{Record: changed}, hold: "accept-earlier-state=12"},
		"accepted":                        {facts: Facts{Generation: 9, Emitted: 12, Record: changed, Accepted: "12"}},
		"accepted at once":                {facts: Facts{Generation: 9, Emitted: 12, Accepted: "12"}},
		"accepted for another generation": {facts: Facts{Generation: 9, Emitted: 12, Record: changed, Accepted: "11"}, want: Decision{Record: changed}, hold: "generation 12"},
		"accepted with nonsense":          {facts: Facts{Generation: 9, Emitted: 12, Record: changed, Accepted: "true"}, want: Decision{Record: changed}, hold: "generation 12"},
		"accepted and emitted":            {facts: Facts{Generation: 9, Emitted: 9, Accepted: "12"}, want: Decision{Answered: true}},
		"accepted without a reason":       {facts: Facts{Generation: 9, Accepted: "12"}, want: Decision{Answered: true}},
		"an earlier one is deleted":       {facts: Facts{Generation: 9, Emitted: 12, Deleting: true}},
		"a recognized one is deleted":     {facts: Facts{Generation: 9, Emitted: 12, Deleting: true, Record: changed}, want: Decision{Record: changed}},

		"left and back again":          {facts: Facts{Generation: 13, Record: left}, want: Decision{Record: left}},
		"left and back with an answer": {facts: Facts{Generation: 13, Record: left, Accepted: "12"}, want: Decision{Record: left, Answered: true}},
		"left":                         {facts: Facts{Generation: 12, Record: left}, want: Decision{Record: back}, hold: "has left this Seed in its generation 12"},
		"left and deleted":             {facts: Facts{Generation: 12, Record: left, Deleting: true}, want: Decision{Record: back}, hold: "has left"},
		"left, and edited":             {facts: Facts{Generation: 14, Record: back}, want: Decision{Record: back}, hold: "has left"},
		"left and accepted":            {facts: Facts{Generation: 12, Record: left, Accepted: "12"}},

		"deleted and back":             {facts: Facts{Generation: 12, Record: deleted}, want: Decision{Record: again}, hold: "this Seed has deleted it"},
		"deleted, back and changed":    {facts: Facts{Generation: 20, Record: deleted}, want: Decision{Record: again}, hold: "this Seed has deleted it"},
		"deleted and in deletion":      {facts: Facts{Generation: 12, Record: deleted, Deleting: true}, want: Decision{Record: deleted}},
		"deleted, and is to be built":  {facts: Facts{Generation: 12, Record: deleted, Accepted: "12"}},
		"deleted, and built by answer": {facts: Facts{Generation: 12, Emitted: 12, Accepted: "12"}, want: Decision{Answered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.facts)
			if (got.Hold != "") != (test.hold != "") || !strings.Contains(got.Hold, test.hold) {
				t.Errorf("held because %q, want %q", got.Hold, test.hold)
			}
			got.Hold = ""
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
