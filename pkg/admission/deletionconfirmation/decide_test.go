package deletionconfirmation

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/confirmation"
)

func shoot(annotations map[string]string) *gardencorev1beta1.Shoot {
	one := &gardencorev1beta1.Shoot{}
	one.Annotations = annotations
	return one
}

func TestConfirmed(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "True": true, "1": true, "false": false, "yes": false, "": false} {
		err := confirmation.Check(shoot(map[string]string{constants.AnnotationConfirmationDeletion: value}))
		if (err == nil) != want {
			t.Errorf("%q: %v", value, err)
		}
	}
	if err := confirmation.Check(shoot(nil)); err == nil || !strings.HasPrefix(err.Error(), `must have a "confirmation.gardener.cloud/deletion" annotation to delete`) {
		t.Error(err)
	}
}

func TestRecordConfirmer(t *testing.T) {
	t.Parallel()
	const by = constants.AnnotationDeletionConfirmedBy
	annotations := func(confirmation, confirmer string) map[string]string {
		found := map[string]string{}
		for key, value := range map[string]string{constants.AnnotationConfirmationDeletion: confirmation, by: confirmer} {
			if value != "" {
				found[key] = value
			}
		}
		return found
	}
	for name, test := range map[string]struct {
		old, updated map[string]string
		want         string
	}{
		"new and confirmed":                {nil, annotations("true", ""), "alice"},
		"new, with another confirmer":      {nil, annotations("true", "bob"), "alice"},
		"new, not confirmed":               {nil, annotations("", "bob"), ""},
		"confirmed":                        {annotations("", ""), annotations("1", ""), "alice"},
		"was confirmed":                    {annotations("true", "bob"), annotations("true", ""), "bob"},
		"was confirmed, confirmer changed": {annotations("true", "bob"), annotations("1", "carol"), "bob"},
		"withdrawn":                        {annotations("true", "bob"), annotations("false", "bob"), ""},
		"removed":                          {annotations("true", "bob"), annotations("", "bob"), ""},
	} {
		updated := shoot(test.updated)
		if test.old == nil {
			recordConfirmer(updated, nil, "alice")
		} else {
			recordConfirmer(updated, shoot(test.old), "alice")
		}
		if got := updated.Annotations[by]; got != test.want {
			t.Errorf("%s: confirmed by %q, want %q", name, got, test.want)
		}
	}
	none := shoot(nil)
	recordConfirmer(none, nil, "alice")
	if len(none.Annotations) > 0 {
		t.Errorf("annotations %v of a Shoot without any", none.Annotations)
	}
}
