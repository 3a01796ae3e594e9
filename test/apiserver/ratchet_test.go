package apiserver

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// rewrite changes the stored form of an object in etcd, as an API server with other rules would have stored it.
func rewrite(t *testing.T, resource, old, replacement string) {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.Get(t).EtcdURL().String()}, DialTimeout: time.Minute})
	kit.Must(t, err)
	defer etcd.Close()
	key := "/registry-gardener/" + resource
	answer, err := etcd.Get(t.Context(), key)
	kit.Must(t, err)
	if len(answer.Kvs) != 1 || bytes.Count(answer.Kvs[0].Value, []byte(old)) != 1 {
		t.Fatalf("etcd has %d values of %s, or none with one %s", len(answer.Kvs), key, old)
	}
	_, err = etcd.Put(t.Context(), key, strings.Replace(string(answer.Kvs[0].Value), old, replacement, 1))
	kit.Must(t, err)
}

// awaitField waits until the API server's cache has a change in etcd, so that no update fails with a conflict.
func awaitField(t *testing.T, c client.Client, object *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	kit.EventuallyTrue(t, "the API server has seen the stored object", func() bool {
		kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		return err == nil && value == want
	})
}

// TestStoredObjectsStayUsable stores an object of several kinds that a rule rejects. Clients can label it, change other
// fields and its status, and release it, but not store another invalid value.
func TestStoredObjectsStayUsable(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	merge := func(object client.Object, patch string) error {
		return c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	for _, test := range []struct {
		kind, resource, old, stored string
		field                       []string
		value                       any
		// other changes another field, wrong changes the invalid field to another invalid value, and right to a valid one.
		other, wrong, right string
	}{
		{"Shoot", "core.gardener.cloud/shoots/garden-ratchet/stored", `"purpose":"evaluation"`, `"purpose":"retired"`, []string{"spec", "purpose"}, "retired",
			`{"spec":{"exposureClassName":"other"}}`, `{"spec":{"purpose":"wrong"}}`, `{"spec":{"purpose":"evaluation"}}`},
		{"Seed", "core.gardener.cloud/seeds/stored", `"mode":"`, `"mode":"Old`, nil, nil,
			`{"spec":{"settings":{"scheduling":{"visible":false}}}}`, `{"spec":{"settings":{"zoneSelection":{"mode":"wrong"}}}}`, ``},
		{"Project", "core.gardener.cloud/projects/stored", `"description":"`, `"description":"<`, nil, nil,
			`{"spec":{"purpose":"other"}}`, `{"spec":{"description":"<wrong"}}`, `{"spec":{"description":"right"}}`},
		{"Bastion", "operations.gardener.cloud/bastions/garden-ratchet/stored", `"sshPublicKey":"ssh`, `"sshPublicKey":"old`, nil, nil,
			`{"spec":{"ingress":[{"ipBlock":{"cidr":"192.0.2.0/24"}}]}}`, `{"spec":{"sshPublicKey":"wrong"}}`, ``},
		{"ManagedSeed", "seedmanagement.gardener.cloud/managedseeds/garden/stored", `"bootstrap":"BootstrapToken"`, `"bootstrap":"Magic"`,
			[]string{"spec", "gardenlet", "bootstrap"}, "Magic",
			`{"spec":{"gardenlet":{"deployment":{"replicaCount":3}}}}`, `{"spec":{"gardenlet":{"bootstrap":"Wrong"}}}`, ``},
	} {
		t.Run(test.kind, func(t *testing.T) {
			i := slices.IndexFunc(examples(t), func(one *unstructured.Unstructured) bool { return one.GetKind() == test.kind })
			object := examples(t)[i]
			object.SetName("stored")
			if object.GetNamespace() != "" && object.GetNamespace() != "garden" {
				object.SetNamespace("garden-ratchet")
			}
			if test.kind == "Project" {
				setField(t, object, "spec.namespace", "garden-stored")
			}
			if test.kind == "Shoot" {
				setField(t, object, "spec.purpose", "evaluation")
			}
			ensureNamespace(t, c, object.GetNamespace())
			object.SetFinalizers([]string{"example.org/wait"})
			confirmDeletion(object)
			kit.Must(t, c.Create(t.Context(), object))
			version := object.GetResourceVersion()
			rewrite(t, test.resource, test.old, test.stored)
			kit.EventuallyTrue(t, "the API server has seen the stored object", func() bool {
				kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
				return object.GetResourceVersion() != version
			})
			if test.field != nil {
				awaitField(t, c, object, test.value, test.field...)
			}

			kit.Must(t, merge(object, `{"metadata":{"labels":{"a":"b"}}}`))
			kit.Must(t, merge(object, test.other))
			if err := merge(object.DeepCopy(), test.wrong); !apierrors.IsInvalid(err) {
				t.Errorf("another invalid value: got %v, want an error", err)
			}
			whole := object.DeepCopy()
			whole.SetLabels(map[string]string{"a": "c"})
			kit.Must(t, c.Update(t.Context(), whole))
			kit.Must(t, c.Status().Patch(t.Context(), whole, client.RawPatch(types.MergePatchType, []byte(`{"status":{}}`))))
			if test.right != "" {
				kit.Must(t, merge(object, test.right))
			}
			kit.Must(t, c.Delete(t.Context(), object))
			kit.Must(t, merge(object, `{"metadata":{"finalizers":null}}`))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				t.Errorf("the object still exists: %v", err)
			}
		})
	}
}

// TestOwnersOfTheStatus checks that a client that applies the status of an object does not own labels, which it cannot set.
func TestOwnersOfTheStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	seed := exampleOf(t, "Seed", "", "owned", &gardencorev1beta1.Seed{})
	kit.Must(t, c.Create(t.Context(), seed))
	apply := func(manager string, content map[string]any, options ...client.SubResourceApplyOption) error {
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion("core.gardener.cloud/v1beta1")
		object.SetKind("Seed")
		object.SetName("owned")
		object.SetLabels(map[string]string{"label": manager})
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if content["status"] != nil {
			return c.Status().Apply(t.Context(), configuration, append(options, client.FieldOwner(manager))...)
		}
		return c.Apply(t.Context(), configuration, client.FieldOwner(manager))
	}
	kit.Must(t, apply("status", map[string]any{"status": map[string]any{"kubernetesVersion": "1.34.2"}}))
	kit.Must(t, apply("labels", map[string]any{}))
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(seed), seed))
	if seed.Labels["label"] != "labels" || seed.Status.KubernetesVersion == nil {
		t.Errorf("labels %v, Kubernetes version %v", seed.Labels, seed.Status.KubernetesVersion)
	}
	for _, owner := range seed.ManagedFields {
		if owner.Manager == "status" && strings.Contains(owner.FieldsV1.String(), "f:metadata") {
			t.Errorf("the owner of the status owns %s", owner.FieldsV1.String())
		}
	}
}
