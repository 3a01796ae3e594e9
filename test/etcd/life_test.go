package etcd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/test/kit"
)

// volumes creates the volumes that the claims of members are bound to.
func (w *world) volumes(count int) {
	w.Helper()
	for i := range count {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.namespace, i)}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}, StorageClassName: w.namespace,
		}}
		kit.Must(w, w.client.Create(w.Context(), volume))
	}
}

// answer simulates the members of simulated Pods until the test ends: it renews the Leases of the members whose Pods are
// ready.
func (w *world) answer() {
	done := make(chan struct{})
	ctx := w.Context()
	go func() {
		defer close(done)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.answerOnce()
			}
		}
	}()
	w.Cleanup(func() { <-done })
}

func (w *world) answerOnce() {
	var pods corev1.PodList
	if err := w.client.List(w.Context(), &pods, client.InNamespace(w.namespace)); err != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			continue
		}
		before := &coordinationv1.Lease{}
		if w.client.Get(w.Context(), client.ObjectKeyFromObject(pod), before) != nil {
			continue
		}
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, lease.AnnotationTLS, fmt.Sprint(hasVolume(pod, "peer-url-ca-etcd")))
		after.Spec.HolderIdentity = ptr.To(lease.Holder{ID: pod.Name[len(pod.Name)-1:], ClusterID: "c1", Leader: strings.HasSuffix(pod.Name, "-0")}.String())
		if before.Spec.RenewTime == nil || time.Since(before.Spec.RenewTime.Time) > 10*time.Second || !sameLease(before, after) {
			after.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
			_ = w.client.Patch(w.Context(), after, client.MergeFrom(before)) // the next round retries it
		}
	}
}

func sameLease(a, b *coordinationv1.Lease) bool {
	return ptr.Equal(a.Spec.HolderIdentity, b.Spec.HolderIdentity) && a.Annotations[lease.AnnotationTLS] == b.Annotations[lease.AnnotationTLS]
}

func hasVolume(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// carriedOut waits until the Etcd meets all conditions that gardenlet waits for.
func (w *world) carriedOut() {
	w.Helper()
	kit.Eventually(w, "the Etcd is reconciled", func() string {
		e := w.etcd()
		status := e.Status
		switch {
		case e.Annotations[etcd.AnnotationOperation] != "":
			return "the operation annotation still exists"
		case status.ObservedGeneration == nil || *status.ObservedGeneration != e.Generation:
			return fmt.Sprintf("generation %d, observed %v", e.Generation, ptr.Deref(status.ObservedGeneration, -1))
		case len(status.LastErrors) > 0:
			return fmt.Sprintf("errors: %+v", status.LastErrors)
		case !ptr.Deref(status.Ready, false):
			return fmt.Sprintf("not ready: %+v", status.LastOperation)
		case !strings.HasPrefix(w.condition(druidv1alpha1.ConditionTypeAllMembersUpdated), "True"):
			return w.condition(druidv1alpha1.ConditionTypeAllMembersUpdated)
		case e.Spec.Replicas > 0 && !strings.HasPrefix(w.condition(druidv1alpha1.ConditionTypeAllMembersReady), "True"):
			return w.condition(druidv1alpha1.ConditionTypeAllMembersReady)
		case status.LastOperation == nil || status.LastOperation.State != "Succeeded":
			return fmt.Sprintf("last operation: %+v", status.LastOperation)
		}
		return ""
	})
}

func (w *world) statefulSet() *appsv1.StatefulSet {
	w.Helper()
	set := &appsv1.StatefulSet{}
	if !w.get(set, name) {
		return nil
	}
	return set
}

// TestLife runs an Etcd through its life cycle with a resource-manager and simulated Pods.
func TestLife(t *testing.T) {
	w := newWorld(t)
	w.volumes(3)
	kit.StartManager(t, w.cp.Kubeconfig(), []string{w.namespace}, "controllers: {resourceClass: seed, health: {syncPeriod: 15s}}")
	first, stop := w.startOperator("v1")
	w.answer()
	w.declare(func(e *druidv1alpha1.Etcd) {
		withTLS(e)
		e.Spec.StorageClass = ptr.To(w.namespace)
		e.Spec.Backup.Store = &druidv1alpha1.StoreSpec{Provider: ptr.To("local"), Container: ptr.To("b"), Prefix: "a"}
	})
	w.carriedOut()
	w.backupIsPending()
	w.children(1)

	// From one to three members, with peer certificates: the first member gets them before others join.
	stop()
	requests, stop := w.startOperator("v1")
	w.quiet(requests)
	if sent := writes(requests); len(sent) > 0 {
		t.Errorf("a restart writes: %v", sent)
	}
	w.sendsNothing(requests)
	rest := requests
	w.change(func(e *druidv1alpha1.Etcd) {
		e.Spec.Replicas, e.Spec.ETCD.PeerURLTLS = 3, certificatesOf("ca-etcd-peer", "etcd-peer")
	})
	w.carriedOut()
	w.children(3)
	if e := w.etcd(); !ptr.Deref(e.Status.PeerURLTLSEnabled, false) || len(e.Status.Members) != 3 || *e.Status.Members[0].Role != druidv1alpha1.EtcdRoleLeader {
		t.Errorf("status: %+v", e.Status)
	}

	// A change is not applied until its reconciliation is requested, and not while reconciliation is suspended.
	e := w.etcd()
	kit.Change(t, w.client, e, func() {
		e.Spec.Annotations = map[string]string{"a": "b"}
		e.Annotations = map[string]string{etcd.AnnotationSuspend: ""}
	})
	w.quiet(requests)
	kit.Change(t, w.client, e, func() { e.Annotations[etcd.AnnotationOperation] = etcd.OperationReconcile })
	w.quiet(requests)
	if set := w.statefulSet(); set.Spec.Template.Annotations["a"] != "" {
		t.Error("a change was applied while reconciliation was suspended")
	}
	kit.Change(t, w.client, e, func() { delete(e.Annotations, etcd.AnnotationSuspend) })
	w.rolled()
	w.carriedOut()

	// A new version of the operator alone does not replace members.
	stop()
	requests, stop = w.startOperator("v2")
	w.quiet(requests)
	if sent := writes(requests); len(sent) > 0 {
		t.Errorf("a new version writes: %v", sent)
	}

	// Hibernation keeps the volumes.
	w.change(func(e *druidv1alpha1.Etcd) { e.Spec.Replicas = 0 })
	w.carriedOut()
	w.eventually(druidv1alpha1.ConditionTypeReady, "Unknown NotChecked")
	w.change(func(e *druidv1alpha1.Etcd) { e.Spec.Replicas = 3 })
	w.carriedOut()

	// Objects that are deleted by hand are created again.
	kit.Must(t, w.client.Delete(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1ObjectMeta(w.namespace, name+"-members")}))
	kit.EventuallyTrue(t, "the ManagedResource is created again", func() bool {
		mr := &resourcesv1alpha1.ManagedResource{}
		return w.get(mr, name+"-members") && mr.DeletionTimestamp == nil
	})
	w.carriedOut()

	kit.Must(t, w.client.Delete(t.Context(), w.etcd()))
	kit.EventuallyTrue(t, "the Etcd is deleted", func() bool { return w.etcd() == nil })
	w.nothingLeft()
	stop()
	for _, sent := range [][]string{writes(first), writes(rest), writes(requests)} {
		for _, request := range sent {
			if !allowed.MatchString(request) {
				t.Errorf("the operator writes to %s", request)
			}
		}
	}
}

// allowed matches the objects that the operator may write.
var allowed = regexp.MustCompile(`/(secrets|managedresources|leases|events|etcds)(/[^/]+(/status)?)?$`)

// sendsNothing checks that the operator sends nothing while the members renew their Leases.
func (w *world) sendsNothing(requests *kit.Requests) {
	w.Helper()
	before, renewed := len(requests.Single()), w.member(0).Renewed
	kit.EventuallyTrue(w, "the member renews its Lease", func() bool { return w.member(0).Renewed.After(renewed) })
	if sent := requests.Single()[before:]; len(sent) > 0 {
		w.Errorf("at rest, the operator sends %v", sent)
	}
}

// rolled checks that the members are replaced from the last to the first: the partition decreases by one each time.
func (w *world) rolled() {
	w.Helper()
	seen := []int32{3}
	kit.Eventually(w, "the members are replaced", func() string {
		set := w.statefulSet()
		partition := *set.Spec.UpdateStrategy.RollingUpdate.Partition
		if set.Spec.Template.Annotations["a"] == "" {
			return "the template is the old one"
		}
		if last := seen[len(seen)-1]; partition != last {
			seen = append(seen, partition)
		}
		if partition > 0 {
			return fmt.Sprintf("partition %d", partition)
		}
		return ""
	})
	for i := 1; i < len(seen); i++ {
		if seen[i] != seen[i-1]-1 {
			w.Errorf("the partitions were %v", seen)
		}
	}
}

// children checks the labels and owners of the Etcd's objects.
func (w *world) children(replicas int32) {
	w.Helper()
	for wanted, object := range map[string]client.Object{
		name: &appsv1.StatefulSet{}, name + " ": &corev1.ServiceAccount{}, name + "  ": &policyv1.PodDisruptionBudget{},
		name + "-client": &corev1.Service{}, name + "-peer": &corev1.Service{}, name + "-config": &corev1.ConfigMap{},
		"druid.gardener.cloud:etcd:" + name: &rbacv1.Role{}, "druid.gardener.cloud:etcd:" + name + " ": &rbacv1.RoleBinding{},
		etcd.MemberName(name, replicas-1): &coordinationv1.Lease{},
	} {
		if !w.get(object, strings.TrimSpace(wanted)) {
			w.Errorf("%T %s does not exist", object, wanted)
			continue
		}
		labels := object.GetLabels()
		if labels[lease.LabelManagedBy] != lease.ManagedBy || labels[lease.LabelPartOf] != name || !metav1.IsControlledBy(object, w.etcd()) {
			w.Errorf("%T %s has the labels %v and the owners %v", object, wanted, labels, object.GetOwnerReferences())
		}
	}
	if got := *w.statefulSet().Spec.Replicas; got != replicas {
		w.Errorf("the StatefulSet has %d replicas, want %d", got, replicas)
	}
}

// backupIsPending checks the condition of an Etcd whose members have not begun with backups.
func (w *world) backupIsPending() {
	w.Helper()
	w.eventually(druidv1alpha1.ConditionTypeBackupReady, "Unknown BackupPending")
}

// nothingLeft checks that the objects of the operator and of its ManagedResource are deleted. Volumes are kept, as with
// etcd-druid.
func (w *world) nothingLeft() {
	w.Helper()
	for _, list := range []client.ObjectList{
		&resourcesv1alpha1.ManagedResourceList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &coordinationv1.LeaseList{},
		&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		kit.Eventually(w, fmt.Sprintf("%T is empty", list), func() string {
			kit.Must(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
			var names []string
			kit.Must(w, meta.EachListItem(list, func(object runtime.Object) error {
				accessor, err := meta.Accessor(object)
				kit.Must(w, err)
				names = append(names, accessor.GetName())
				return nil
			}))
			return strings.Join(names, ", ")
		})
	}
	for object, of := range map[client.Object]string{
		&corev1.Secret{}: "etcd-ledger-" + name, &corev1.ConfigMap{}: name + "-config", &corev1.ServiceAccount{}: name,
	} {
		if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: of}, object); !apierrors.IsNotFound(err) {
			w.Errorf("%T %s: %v", object, of, err)
		}
	}
	var claims corev1.PersistentVolumeClaimList
	kit.Must(w, w.client.List(w.Context(), &claims, client.InNamespace(w.namespace)))
	if len(claims.Items) != 3 {
		w.Errorf("found %d claims of volumes, want 3", len(claims.Items))
	}
}

// writes returns the requests that change objects.
func writes(requests *kit.Requests) []string { return requests.Writes() }

// quiet waits until the operator has sent nothing for some time.
func (w *world) quiet(requests *kit.Requests) {
	w.Helper()
	steady := kit.Steady(1500 * time.Millisecond)
	kit.EventuallyTrue(w, "the operator is at rest", func() bool {
		count := len(requests.Single())
		return steady(count) && count > 0
	})
}
