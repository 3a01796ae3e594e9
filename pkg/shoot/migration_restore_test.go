package shoot

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// arriving returns a Shoot that arrives in a Seed, with backups in the bucket of the previous one and the state of one extension.
func arriving(t *testing.T, change ...func(*Inputs)) *mover {
	t.Helper()
	in := known(t, append(change, backedUpSeed)...)
	in.Phase, in.Shoot.Status.LastOperation = phaseRestore, succeededAs(corev1beta1.LastOperationTypeMigrate)
	in.Entry.Spec.BucketName, in.Entry.Status.SeedName = "previous", nil
	in.Entry.Status.LastOperation = succeededAs(corev1beta1.LastOperationTypeMigrate)
	in.Move.States = []corev1beta1.ExtensionResourceState{
		{Kind: "Extension", Name: ptr.To("before-after"), State: &runtime.RawExtension{Raw: []byte(`{"key":"value"}`)}},
		{Kind: "Infrastructure", Name: ptr.To("one"), State: &runtime.RawExtension{Raw: []byte(`{"network":"a"}`)}},
	}
	return newMover(newSimulation(t, in))
}

// copiesBackups makes the extension provide the previous backups and the bucket of this Seed.
func (m *mover) copiesBackups() {
	source := m.in.Entry.DeepCopy()
	source.Name, source.Status.LastOperation = m.in.sourceEntry(), succeededAs(corev1beta1.LastOperationTypeReconcile)
	m.in.Move.Source, m.in.Move.SourceProvider = source, "gcp"
	m.in.Entry = m.in.Entry.DeepCopy()
	m.in.Entry.Spec.BucketName, m.in.Entry.Status.LastOperation = string(m.in.Seed.UID), succeededAs(corev1beta1.LastOperationTypeRestore)
}

func (m *mover) exists(kind string) bool {
	for key := range m.objects {
		if key.Kind == kind {
			return true
		}
	}
	return false
}

// TestArrives restores Shoots of all kinds. Etcd begins with copied backups only, objects of extensions get their state before they
// are restored, and a later reconcile asks no extension again.
func TestArrives(t *testing.T) {
	for name, change := range movingShoots() {
		t.Run(name, func(t *testing.T) {
			m := arriving(t, change...)
			m.ends()
			if m.works(bundleEtcdMain) {
				t.Errorf("etcd exists before the backups do:\n%s", m.text())
			}
			m.copiesBackups()
			m.broken[bundleCopy] = true
			m.ends()
			if !m.exists("EtcdCopyBackupsTask") || m.works(bundleEtcdMain) {
				t.Errorf("the backups are not copied before etcd begins:\n%s", m.text())
			}
			delete(m.broken, bundleCopy)
			m.ends()
			asked := map[string]string{}
			for key, each := range m.objects {
				if key.Group == extensionsv1alpha1.GroupName && key.Kind != "Cluster" {
					wanted := constants.OperationRestore
					if key.Kind == kindWorker && m.in.hasManager() {
						wanted = constants.OperationReconcile // after the restoration
					}
					if asked[key.Name] = each.operation; each.operation != wanted {
						t.Errorf("%s has the operation %q", key, each.operation)
					}
				}
			}
			wants := slices.Contains(m.in.extensions(), "before-after")
			if m.waited["before-after"] != wants || m.waited["one"] != m.in.hasWorkers() {
				t.Errorf("the state was written for %v", m.waited)
			}
			if m.choices(bundleEtcdMain)[choiceRestoring] == "" {
				t.Error("the main etcd does not begin with backups")
			}
			m.in.Phase = phaseStays
			m.ends()
			if m.exists("EtcdCopyBackupsTask") || m.choices(bundleEtcdMain)[choiceRestoring] == "" {
				t.Errorf("after the restoration: %s", m.text())
			}
			if !m.in.asleepBefore() && !m.works(bundleControllerManager) {
				t.Errorf("the control plane does not work:\n%s", m.text())
			}
			for _, fault := range m.simulation.faults {
				t.Error(fault)
			}
		})
	}
}

// TestNothingIsGenerated checks that a control plane that arrives generates no authority or key, and that the copy names both stores.
func TestNothingIsGenerated(t *testing.T) {
	m := arriving(t)
	m.copiesBackups()
	in := m.in
	for _, config := range in.secretConfigs() {
		kept := config.Kind == secrets.KindCA || config.Kind == secrets.KindRSAKey || config.Kind == secrets.KindEncryptionKey
		if kept && config.Persist && config.Name != constants.SecretNameCAMetricsServer && !config.RestoreOnly {
			t.Errorf("%s would be generated", config.Name)
		}
	}
	in.NamespaceExists = true
	placed(&in)
	plan := planOf(t, in)
	for _, bundle := range plan.Bundles {
		if bundle.Name != bundleCopy {
			continue
		}
		text := texts(t, plan)[bundleCopy]
		for _, want := range []string{`"container":"previous"`, `"provider":"gcp"`, `"container":"seed-1"`, `"name":"source-etcd-backup"`, `"enabled":true`} {
			if !strings.Contains(text, want) {
				t.Errorf("the task has no %s: %s", want, text)
			}
		}
		return
	}
	t.Errorf("the backups are not copied: %+v", plan.Waits)
}
