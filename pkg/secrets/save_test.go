package secrets

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func canonical(t *testing.T, text string) string {
	t.Helper()
	result, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(result)
}

func (p *place) secrets() []corev1.Secret {
	p.Helper()
	var list corev1.SecretList
	if err := p.client.List(p.Context(), &list, client.InNamespace(namespace)); err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// save returns the saved state of a control plane.
func (p *place) save() []corev1beta1.GardenerResourceData {
	p.Helper()
	data, err := Save(p.secrets())
	if err != nil {
		p.Fatal(err)
	}
	return data
}

func savedOf(t *testing.T, data []corev1beta1.GardenerResourceData) []Secret {
	t.Helper()
	result, err := Saved(data)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// persistent returns the names of the configs whose kinds are persisted.
func persistent() []string {
	var names []string
	for _, config := range kinds() {
		if config.Persist {
			names = append(names, config.Name)
		}
	}
	return names
}

func restoreOnly() []Config {
	asked := kinds()
	for i := range asked {
		asked[i].RestoreOnly = asked[i].Persist
	}
	return asked
}

// TestRestore moves a control plane to another seed during a rotation.
func TestRestore(t *testing.T) {
	from, to := newPlace(t), newPlace(t)
	from.ensure(kinds())
	from.clock.SetTime(start.Add(day))
	from.rotate(corev1beta1.RotationPreparing, persistent()...)
	before := from.ensure(kinds())
	data := from.save()
	if left := Unsaved(before, savedOf(t, data)); len(left) > 0 {
		t.Errorf("not saved: %v", left)
	}
	data = append(data, corev1beta1.GardenerResourceData{Name: "machine-state", Type: "machine-state", Data: runtime.RawExtension{Raw: []byte(`{"state": "x"}`)}})
	to.clock.SetTime(start.Add(2 * day))
	to.rotations = from.rotations
	for range 2 { // Restore can be repeated
		if err := Restore(t.Context(), to.client, namespace, data); err != nil {
			t.Fatal(err)
		}
	}
	after := to.ensure(restoreOnly())
	for _, name := range persistent() {
		one, other := before.Items[name], after.Items[name]
		if one.Current.Name != other.Current.Name || one.Current.Data.checksum() != other.Current.Data.checksum() || (one.Old == nil) != (other.Old == nil) ||
			one.Old != nil && one.Old.Data.checksum() != other.Old.Data.checksum() {
			t.Errorf("%s was not restored", name)
		}
	}
	data[0].Data.Raw = []byte(`{"data": {"ca.crt": "b3RoZXI="}}`)
	if err := Restore(t.Context(), to.client, namespace, data); err == nil || !strings.Contains(err.Error(), "restore Secret "+namespace+"/ca: it exists with different data") {
		t.Errorf("error %v", err)
	}
	for raw, want := range map[string]string{"{": "saved secret ca is not a Secret in JSON", strings.Repeat(" ", maxSaved+1): "more than the"} {
		data[0].Data.Raw = []byte(raw)
		if err := Restore(t.Context(), to.client, namespace, data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	}
}

// TestWhatIsLostIsRestored deletes each persisted Secret in each phase, with and without a saved state.
func TestWhatIsLostIsRestored(t *testing.T) {
	phases := []corev1beta1.CredentialsRotationPhase{
		"", corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting, corev1beta1.RotationCompleted,
	}
	p := newPlace(t)
	p.ensure(kinds())
	for i, phase := range phases {
		if phase != "" {
			p.clock.SetTime(start.Add(day))
			p.rotate(phase, "ca", "ca-client", "service-account-key", "kube-apiserver-etcd-encryption-key")
		}
		before := p.ensure(restoreOnly())
		p.cleanUp(restoreOnly(), nil, nothing)
		saved := savedOf(t, p.save())
		for _, name := range persistent() {
			item := before.Items[name]
			lost := []Secret{item.Current}
			if item.Old != nil {
				lost = append(lost, *item.Old)
			}
			for _, secret := range lost {
				p.lose(secret)
				// In phase Preparing, a lost current Secret looks like one that was not generated yet. Only the saved state shows the
				// difference.
				if i != 1 || secret.Name != item.Current.Name {
					if text := p.refused(Wanted{Configs: restoreOnly()}); !strings.Contains(text, "is lost") || !strings.Contains(text, name) {
						t.Errorf("phase %q, %s: error %s", phase, secret.Name, text)
					}
				}
				result, err := p.manager.Ensure(t.Context(), Wanted{Configs: restoreOnly(), Rotations: p.rotations, Saved: saved})
				if err != nil {
					t.Fatalf("phase %q, %s: %v", phase, secret.Name, err)
				}
				restored := result.Items[name]
				if restored.Current.Data.checksum() != item.Current.Data.checksum() || item.Old != nil && restored.Old.Data.checksum() != item.Old.Data.checksum() {
					t.Errorf("phase %q: %s was not restored", phase, secret.Name)
				}
			}
		}
		if names := namesOf(p.secrets()); len(names) == 0 || len(p.ensure(restoreOnly()).Unused) > 0 {
			t.Errorf("phase %q: unused Secrets among %v", phase, names)
		}
	}
}

func namesOf(objects []corev1.Secret) []string {
	var names []string
	for i := range objects {
		names = append(names, objects[i].Name)
	}
	slices.Sort(names)
	return names
}

// TestStaleSavedState uses a state that was saved before a rotation was completed. It must not restore withdrawn Secrets.
func TestStaleSavedState(t *testing.T) {
	p := newPlace(t)
	p.ensure(kinds())
	p.clock.SetTime(start.Add(day))
	p.rotate(corev1beta1.RotationPreparing, persistent()...)
	preparing := p.ensure(kinds())
	stale := savedOf(t, p.save())
	p.rotate(corev1beta1.RotationCompleted, persistent()...)
	p.ensure(kinds())
	p.cleanUp(kinds(), nil, nothing)
	names := namesOf(p.secrets())
	result, err := p.manager.Ensure(t.Context(), Wanted{Configs: kinds(), Rotations: p.rotations, Saved: stale})
	if err != nil || !slices.Equal(names, namesOf(p.secrets())) || result.Items["ca"].Current.Name != preparing.Items["ca"].Current.Name {
		t.Errorf("error %v: %v", err, namesOf(p.secrets()))
	}
	for i := range stale {
		if stale[i].Name == result.Items["ca"].Current.Name {
			stale[i].Data = Material{KeyCACert: []byte("other")}
		}
	}
	p.rotate(corev1beta1.RotationCompleted, "ca")
	if text := func() string {
		_, err := p.manager.Ensure(t.Context(), Wanted{Configs: restoreOnly(), Rotations: p.rotations, Saved: stale})
		if err == nil {
			return ""
		}
		return err.Error()
	}(); !strings.Contains(text, "was replaced: its data differ") {
		t.Errorf("error %s", text)
	}
}

func TestUnsaved(t *testing.T) {
	p := newPlace(t)
	result := p.ensure(kinds())
	if got := Unsaved(result, nil); len(got) != len(persistent()) {
		t.Errorf("not saved: %v", got)
	}
}

// TestRestoreOnlyAllowsAChangedConfig adds a user after a rotation. The Secret from before the change exists, so nothing is
// lost.
func TestRestoreOnlyAllowsAChangedConfig(t *testing.T) {
	p := newPlace(t)
	asked := []Config{{Name: "tokens", Kind: KindStaticToken, Users: []User{{Name: "a"}}, Persist: true}}
	p.ensure(asked)
	p.clock.SetTime(start.Add(day))
	p.rotate(corev1beta1.RotationPreparing, "tokens")
	p.ensure(asked)
	p.rotate(corev1beta1.RotationCompleted, "tokens")
	asked[0].RestoreOnly = true
	before, _ := p.ensure(asked).Items["tokens"].Token("a")
	asked[0].Users = append(asked[0].Users, User{Name: "b"})
	if after, err := p.ensure(asked).Items["tokens"].Token("a"); err != nil || after != before {
		t.Errorf("the token of an existing user changed: %v", err)
	}
}

// TestSavedIsReadWhenSomethingIsMissing checks that every saved Secret is restored, also one that could be generated again, and
// that nothing is read at rest.
func TestSavedIsReadWhenSomethingIsMissing(t *testing.T) {
	p := newPlace(t)
	before := p.ensure(few())
	saved, reads, fails := savedOf(t, p.save()), 0, error(nil)
	wanted := Wanted{Configs: few(), Load: func(context.Context) ([]Secret, error) { reads++; return saved, fails }}
	if _, err := p.manager.Ensure(p.Context(), wanted); err != nil || reads > 0 {
		t.Errorf("%d reads at rest: %v", reads, err)
	}
	lost := 0
	for name, item := range before.Items {
		if !item.Config.Persist {
			continue
		}
		lost++
		p.lose(item.Current)
		result, err := p.manager.Ensure(p.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if result.Items[name].Current.Data.checksum() != item.Current.Data.checksum() {
			t.Errorf("%s was generated again", name)
		}
	}
	if lost == 0 || reads != lost {
		t.Errorf("%d were lost, with %d reads", lost, reads)
	}
	p.lose(before.Items["ca"].Current)
	fails = errors.New("the garden is away")
	if _, err := p.manager.Ensure(p.Context(), wanted); !errors.Is(err, fails) {
		t.Errorf("a Secret is generated while the saved state cannot be read: %v", err)
	}
}
