package seed

import (
	"flag"
	"maps"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/test/kit"
)

var everyKill = flag.Bool("seed.kills", false, "kill the gardenlet at each of its writes instead of only at some")

// killedLives leads Seeds through lives in which the gardenlet is killed (SIGKILL) at its writes and started again,
// while the Seed is created and while it is deleted. Each must end in the same state as a life without kills, and
// leave nothing behind.
func (p *program) killedLives(emitted map[string]int, objects map[string]bool) {
	p.Helper()
	count := 0
	lives := map[string]func(string, int) moment{
		"at some writes": func(string, int) moment {
			count++
			switch count % 10 {
			case 0:
				return before
			case 5:
				return after
			}
			return never
		},
	}
	if *everyKill {
		lives = map[string]func(string, int) moment{
			// A write that was not executed is sent again after the restart and then succeeds.
			"before each write": func(_ string, attempt int) moment {
				if attempt%2 == 1 {
					return before
				}
				return never
			},
			// The operation of an extension contains its time. A gardenlet that is killed after every Secret would request a
			// new operation forever.
			"after each second write": func(_ string, attempt int) moment {
				if attempt%2 == 1 {
					return after
				}
				return never
			},
		}
	}
	of := p.T
	for name, kill := range lives {
		of.Run("killed "+name, func(t *testing.T) {
			p.T = t
			defer func() { p.T = of }()
			installation := p.install(p.name)
			p.start(kill)
			p.settled()
			p.secretsExist()
			if again := p.normalized(); !maps.Equal(again, emitted) {
				t.Errorf("the seed has different objects than after a life without kills: %s", difference(again, emitted))
			}
			atCreation := p.kills
			p.end(installation)
			p.same(objects)
			t.Logf("%d writes, killed at %d of them: %d during creation, %d during deletion", p.writes, p.kills, atCreation, p.kills-atCreation)
		})
	}
}

// secretsExist checks that no ManagedResource names a Secret that does not exist.
func (w *world) secretsExist() {
	w.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	for _, mr := range list.Items {
		for _, reference := range mr.Spec.SecretRefs {
			if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
				w.Errorf("ManagedResource %s: %v", mr.Name, err)
			}
		}
	}
}

// hash is the suffix of a name that depends on the content.
var hash = regexp.MustCompile(`(-[0-9a-f]{5,8})+$`)

// normalized counts the objects of the seed by name, without suffixes that depend on random content. It skips the
// garbage of a gardenlet that was killed between a Secret and its ManagedResource. The garbage collector deletes that
// later, or gardenlet deletes it with the Seed.
func (p *program) normalized() map[string]int {
	p.Helper()
	counts := map[string]int{}
	seed, garbage := p.get(p.name), p.garbage()
	for name := range p.objects() {
		if garbage[name] {
			continue
		}
		counts[hash.ReplaceAllString(strings.ReplaceAll(name, string(seed.UID), "<uid>"), "")]++
	}
	return counts
}

// garbage returns the Secrets with manifests that no ManagedResource refers to.
func (w *world) garbage() map[string]bool {
	w.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	used := map[string]bool{}
	for _, mr := range list.Items {
		for _, reference := range mr.Spec.SecretRefs {
			used[mr.Namespace+"/"+reference.Name] = true
		}
	}
	var secrets corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &secrets, client.HasLabels{flow.LabelFlow, references.LabelKeyGarbageCollectable}))
	garbage := map[string]bool{}
	for _, secret := range secrets.Items {
		if name := secret.Namespace + "/" + secret.Name; !used[name] {
			garbage["Secret "+name] = true
		}
	}
	return garbage
}

// difference describes the differences between counts.
func difference(got, want map[string]int) string {
	var text strings.Builder
	for _, name := range sorted(keysOf(got, want)) {
		if got[name] != want[name] {
			text.WriteString(name + " ")
		}
	}
	return text.String()
}

func keysOf(all ...map[string]int) map[string]bool {
	keys := map[string]bool{}
	for _, one := range all {
		for key := range one {
			keys[key] = true
		}
	}
	return keys
}
