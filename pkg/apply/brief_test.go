package apply

import "testing"

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"denied": "denied",
		`Job "x" is invalid: spec.template: Invalid value: {"env":[{"value":"hunter2: x"}]}: field is immutable`: `Job "x" is invalid: spec.template: Invalid value: …: field is immutable`,
		`Service "x" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535`:          `Service "x" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535`,
		"failed to create typed patch object: errors:\n  .spec.b: not declared\n  .spec.a: not declared":         "failed to create typed patch object: .spec.a: not declared, .spec.b: not declared",
	} {
		if got := brief(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
