package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// fault is the failure of one write. Each of them ends the pass, like the end of the process does.
type fault string

const (
	refused  fault = "refused"
	conflict fault = "conflict"
	// answerLost performs the write, and returns an error.
	answerLost fault = "answer lost"
	// overtaken lets another process make the same pass first.
	overtaken fault = "overtaken"
)

var errFault = errors.New("the fault of this run")

// faulty injects a fault at one write, and counts writes.
type faulty struct {
	*place
	at    int
	fault fault
	// writes are the verbs of the writes so far.
	writes []string
	// other makes the pass of the other process.
	other func()
}

func (f *faulty) write(verb, name string, write func() error) error {
	f.writes = append(f.writes, verb)
	if len(f.writes)-1 != f.at {
		return write()
	}
	switch f.fault {
	case refused:
		return errFault
	case conflict:
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, name, errFault)
	case answerLost:
		if err := write(); err != nil {
			return err
		}
		return errFault
	}
	f.other()
	return write()
}

func (f *faulty) writer() client.Client {
	return interceptor.NewClient(f.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return f.write("create", object.GetName(), func() error { return c.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return f.write("patch", object.GetName(), func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return f.write("delete", object.GetName(), func() error { return c.Delete(ctx, object, options...) })
		},
	})
}

// few returns configs that cover all ways in which Secrets depend on each other. RSA keys take too long to generate.
func few() []Config {
	names := []string{"ca", "ca-client", "kube-apiserver", "kube-apiserver-etcd-encryption-key", "kube-apiserver-static-token", "bootstrap"}
	return slices.DeleteFunc(kinds(), func(config Config) bool { return !slices.Contains(names, config.Name) })
}

// life returns the steps in the life of a control plane. Each step is repeated until it succeeds.
func life() []func(*place) Wanted {
	wanted := func(p *place, configs []Config) Wanted { return Wanted{Configs: configs, Rotations: p.rotations} }
	step := func(days int, phase corev1beta1.CredentialsRotationPhase, configs func() []Config) func(*place) Wanted {
		return func(p *place) Wanted {
			p.clock.SetTime(start.AddDate(0, 0, days))
			if phase != "" {
				p.rotate(phase, persistent()...)
			}
			return wanted(p, configs())
		}
	}
	relabelled := func() []Config {
		configs := few()
		for i := range configs {
			configs[i].RenewAfter, configs[i].RestoreOnly = 70, configs[i].Persist
		}
		return configs
	}
	return []func(*place) Wanted{
		step(0, "", few), step(1, "", relabelled), step(2, corev1beta1.RotationPreparing, relabelled), step(3, corev1beta1.RotationPrepared, relabelled),
		step(4, corev1beta1.RotationCompleting, relabelled), step(5, corev1beta1.RotationCompleted, relabelled), step(3000, "", relabelled),
	}
}

// TestFaultsOfWrites injects each fault at each write of a life with a rotation and renewals. No Secret in use is lost or gets
// other data, and in the end there are as many Secrets as without the fault.
func TestFaultsOfWrites(t *testing.T) {
	want, writes := liveThrough(t, -1, "")
	runs := 0
	for at, verb := range writes {
		for _, fault := range []fault{refused, conflict, answerLost, overtaken} {
			if fault == conflict && verb == "create" {
				continue
			}
			if got, _ := liveThrough(t, at, fault); got != want {
				t.Errorf("write %d, %s: %s, want %s", at, fault, got, want)
			}
			runs++
		}
	}
	t.Logf("%d writes, %d runs with a fault", len(writes), runs)
}

// liveThrough returns a summary of the Secrets in the end, and the writes.
func liveThrough(t *testing.T, at int, fault fault) (end string, writes []string) {
	t.Helper()
	f := &faulty{place: newPlace(t), at: at, fault: fault}
	content := map[string]string{}
	inUse := map[string]string{}
	for number, step := range life() {
		wanted := step(f.place)
		other := *f.manager
		f.other = func() {
			if result, err := other.Ensure(t.Context(), wanted); err == nil {
				f.use(number, result, inUse)
			}
		}
		for attempt := 0; ; attempt++ {
			manager := other // a new process
			manager.Writer = f.writer()
			result, err := manager.Ensure(t.Context(), wanted)
			if err == nil {
				f.use(number, result, inUse)
				err = manager.CleanUp(t.Context(), wanted, nil, nothing)
			}
			f.sameContent(at, fault, content)
			if err == nil {
				break
			}
			if attempt > 0 {
				t.Fatalf("write %d, %s: step %d: %v", at, fault, number, err)
			}
		}
	}
	return f.summary(), f.writes
}

// use records the Secrets that a pass returns. They must be the same as those that earlier passes of the same step returned.
func (f *faulty) use(step int, result Result, inUse map[string]string) {
	f.Helper()
	for name, item := range result.Items {
		key := fmt.Sprintf("%d %s", step, name)
		checksum := item.Current.Name + item.Current.Data.checksum()
		if before, used := inUse[key]; used && before != checksum {
			f.Errorf("write %d, %s: step %d: %s differs from the one that was returned before", f.at, f.fault, step, name)
		}
		inUse[key] = checksum
	}
}

// sameContent checks that no Secret has other data than a Secret with the same name had before.
func (f *faulty) sameContent(at int, fault fault, content map[string]string) {
	f.Helper()
	for _, object := range f.secrets() {
		checksum := Material(object.Data).checksum()
		if before := content[object.Name]; before != "" && before != checksum {
			f.Errorf("write %d, %s: %s has other data than before", at, fault, object.Name)
		}
		content[object.Name] = checksum
	}
}

// summary counts the Secrets by the names of their configs.
func (f *faulty) summary() string {
	counts := map[string]int{}
	for _, object := range f.secrets() {
		counts[object.Labels["name"]]++
	}
	return fmt.Sprint(counts)
}
