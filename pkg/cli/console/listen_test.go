package console

import (
	"reflect"
	"testing"
)

func TestNotesLeaveOutProgress(t *testing.T) {
	listening, notes := (&Console{}).Capture()
	listening.Warn("Reading objects (3) …")
	listening.Warn("Not shown: Pods.")
	if got := notes.Lines(); !reflect.DeepEqual(got, []string{"Not shown: Pods."}) {
		t.Errorf("%q", got)
	}
}
