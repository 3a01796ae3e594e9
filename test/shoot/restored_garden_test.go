package shoot

import (
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestRestoredGarden puts earlier states of a Shoot back into etcd of the garden, as the restoration of a backup does. gardenlet changes nothing
// until a person has accepted the earlier state, and builds no control plane that it has deleted.
func TestRestoredGarden(t *testing.T) {
	w := newWorld(t)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{w.gardens.EtcdURL().String()}, DialTimeout: kit.WaitTimeout, Logger: zap.NewNop()})
	kit.Must(t, err)
	defer etcd.Close()
	b := &backup{world: w, etcd: etcd}
	_, _, stop := w.gardenlet()
	w.declare()
	b.emitted("1")
	b.take()
	b.edit(300)
	b.emitted("2")

	b.restore()
	b.held("generation 2, and the garden shows the generation 1")
	b.announced()
	stop()
	toGarden, toSeed, stop := w.gardenlet()
	kit.EventuallyTrue(t, "the Shoot is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	quiet(t, toGarden, toSeed)
	if sent := writes(toSeed); len(sent) > 0 {
		t.Errorf("a restart wrote %v", sent)
	}
	b.edit(301)
	b.edit(302) // now the generation is even later
	quiet(t, toGarden, toSeed)
	b.held("accept-earlier-state=2")
	b.emitted("2")
	shoot := w.get()
	kit.Change(t, w.garden, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationShootAcceptEarlierState, "2")
	})
	b.emitted("3")
	kit.Eventually(t, "the annotation is removed", func() string { return w.get().Annotations[constants.AnnotationShootAcceptEarlierState] })

	b.take()
	w.delete()
	w.awaitGone()
	b.restore()
	b.held("this Seed has deleted it")
	quiet(t, toGarden, toSeed)
	if mr := b.managedResource(); mr != nil {
		t.Errorf("a control plane is built again: %v", mr.Annotations)
	}
	w.delete()
	w.awaitGone()
	stop()
}

// backup is an earlier state of the Shoot in etcd of the garden.
type backup struct {
	*world
	etcd *clientv3.Client
	key  string
	text string
}

// take stores the current state.
func (b *backup) take() {
	b.Helper()
	all, err := b.etcd.Get(b.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	kit.Must(b, err)
	for _, pair := range all.Kvs {
		if strings.HasSuffix(string(pair.Key), "/shoots/"+namespace+"/"+shootName) {
			b.key = string(pair.Key)
		}
	}
	stored, err := b.etcd.Get(b.Context(), b.key)
	kit.Must(b, err)
	if b.key == "" || len(stored.Kvs) != 1 {
		b.Fatalf("etcd of the garden has %d objects with the key %q", len(stored.Kvs), b.key)
	}
	b.text = string(stored.Kvs[0].Value)
}

// restore puts the stored state back.
func (b *backup) restore() {
	b.Helper()
	_, err := b.etcd.Put(b.Context(), b.key, b.text)
	kit.Must(b, err)
}

// edit changes the Shoot as a user.
func (b *backup) edit(limit int32) {
	b.Helper()
	shoot := b.get()
	kit.Change(b, b.garden, shoot, func() {
		shoot.Spec.Kubernetes.KubeAPIServer.Requests = &corev1beta1.APIServerRequests{MaxNonMutatingInflight: ptr.To(limit)}
	})
}

// managedResource returns the ManagedResource with the namespace of the control plane, nil if it does not exist.
func (b *backup) managedResource() *resourcesv1alpha1.ManagedResource {
	b.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	err := b.seed.Get(b.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: technical}, mr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	kit.Must(b, err)
	return mr
}

// emitted waits until a generation of the Shoot is emitted.
func (b *backup) emitted(generation string) {
	b.Helper()
	kit.Eventually(b, "generation "+generation+" is emitted", func() string {
		if mr := b.managedResource(); mr == nil || mr.Annotations[flow.AnnotationGeneration] != generation {
			return fmt.Sprintf("the ManagedResource is %+v", mr)
		}
		return ""
	})
}

// held waits until the Shoot waits for a person.
func (b *backup) held(text string) {
	b.Helper()
	kit.Eventually(b, "the Shoot waits: "+text, func() string {
		shoot := b.get()
		if shoot == nil {
			return "it does not exist"
		}
		if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStatePending || !strings.Contains(last.Description, text) {
			return fmt.Sprintf("%+v", last)
		}
		return ""
	})
}

// announced waits for the Event about the earlier state.
func (b *backup) announced() {
	b.Helper()
	kit.Eventually(b, "an Event reports the earlier state", func() string {
		var list eventsv1.EventList
		kit.Must(b, b.garden.List(b.Context(), &list, client.InNamespace(namespace)))
		for _, event := range list.Items {
			if event.Regarding.Name == shootName && event.Reason == "GardenRestored" {
				return ""
			}
		}
		return "no Event found"
	})
}
