package secrets

import (
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestUnknownRotation rotates twice, and restores the state of the owner from before the second rotation. While the old authority exists,
// nothing is computed: it would drop out of the bundle, although the second rotation had not begun to complete. Each way out is possible: the
// state is corrected, or another rotation is started. Without the old authority, the restored state changes nothing.
func TestUnknownRotation(t *testing.T) {
	p, ca := newPlace(t), configs()[:1]
	p.ensure(ca)
	p.rotate(corev1beta1.RotationPreparing, "ca")
	p.ensure(ca)
	for _, phase := range []corev1beta1.CredentialsRotationPhase{corev1beta1.RotationPrepared, corev1beta1.RotationCompleting} {
		p.rotate(phase, "ca")
		p.ensure(ca)
	}
	p.cleanUp(ca, nil, nothing)
	p.rotate(corev1beta1.RotationCompleted, "ca")
	p.ensure(ca)
	restored := p.rotations["ca"]

	p.clock.SetTime(start.Add(day))
	p.rotate(corev1beta1.RotationPreparing, "ca")
	preparing, known := p.ensure(ca).Items["ca"], p.rotations["ca"]
	p.rotations["ca"] = restored
	if why := p.refused(Wanted{Configs: ca}); !strings.Contains(why, "secret ca: a rotation began at 2027-01-03T03:04:05Z, but the last one that is known began at 2027-01-02") {
		t.Errorf("refused because of %q", why)
	}

	p.rotations["ca"] = known
	if again := p.ensure(ca).Items["ca"]; again.Current.Name != preparing.Current.Name || again.Old == nil || again.Old.Name != preparing.Old.Name {
		t.Errorf("with the right state the authority is %s, want %s", again.Current.Name, preparing.Current.Name)
	}
	p.rotations["ca"] = restored
	p.clock.SetTime(start.Add(2 * day))
	p.rotate(corev1beta1.RotationPreparing, "ca")
	if next := p.ensure(ca).Items["ca"]; next.Old == nil || next.Old.Name != preparing.Current.Name {
		t.Errorf("after a new rotation, the old authority is %+v, want %s", next.Old, preparing.Current.Name)
	}

	p.rotate(corev1beta1.RotationCompleting, "ca")
	current := p.ensure(ca).Items["ca"].Current.Name
	p.cleanUp(ca, nil, nothing)
	p.rotations["ca"] = restored
	if last := p.ensure(ca).Items["ca"]; last.Current.Name != current || last.Old != nil {
		t.Errorf("without old authorities, the authority is %s, want %s", last.Current.Name, current)
	}
}
