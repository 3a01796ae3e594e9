package etcd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/test/kit"
)

// withTLS declares the client certificates.
func withTLS(e *druidv1alpha1.Etcd) {
	e.Spec.ETCD.ClientURLTLS = certificatesOf("ca-etcd", "etcd-server")
	e.Spec.ETCD.ClientURLTLS.ClientTLSSecretRef.Name = "etcd-client"
}

// member returns the content of a member's Lease.
func (w *world) member(ordinal int32) lease.Member {
	w.Helper()
	l := &coordinationv1.Lease{}
	w.get(l, etcd.MemberName(name, ordinal))
	return lease.Read(l)
}

// leader returns the ordinal of the leader.
func (w *world) leader() int32 {
	w.Helper()
	var found int32 = -1
	kit.EventuallyTrue(w, "a member leads", func() bool {
		for i := range int32(3) {
			if m := w.member(i); m.Holder != nil && m.Holder.Leader && m.State.Reason == "" {
				found = i
			}
		}
		return found >= 0
	})
	return found
}

// watchQuorum records each reason of the condition Ready until the returned function is called.
func (w *world) watchQuorum() (stop func() []string) {
	w.Helper()
	watching, err := client.NewWithWatch(w.cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(w, err)
	ctx, cancel := context.WithCancel(w.Context())
	stream, err := watching.Watch(ctx, &druidv1alpha1.EtcdList{}, client.InNamespace(w.namespace))
	kit.Must(w, err)
	var reasons []string
	var done sync.WaitGroup
	done.Go(func() {
		for event := range stream.ResultChan() {
			e, is := event.Object.(*druidv1alpha1.Etcd)
			if !is {
				continue
			}
			for _, c := range e.Status.Conditions {
				if c.Type == druidv1alpha1.ConditionTypeReady && !slices.Contains(reasons, c.Reason) {
					reasons = append(reasons, c.Reason)
				}
			}
		}
	})
	return func() []string {
		cancel()
		done.Wait()
		return reasons
	}
}

// TestThreeMembers runs a cluster under write load. It grows from one member to three, loses the processes and the volumes
// of members, is rolled out, and is defragmented. No acknowledged write is lost, and a majority always exists.
func TestThreeMembers(t *testing.T) {
	w := newWorld(t)
	s := newSite(w, 3)
	_, stop := w.startOperator("v1")
	defer stop()
	w.declare(withTLS)
	s.members[0].start()
	s.members[0].eventuallyReady()
	w.eventually(druidv1alpha1.ConditionTypeReady, "True Quorate")
	l := s.startLoad()
	l.goesOn()

	// From one to three members: the first member gets the peer certificates, then the others join.
	w.change(func(e *druidv1alpha1.Etcd) {
		e.Spec.Replicas, e.Spec.ETCD.PeerURLTLS = 3, certificatesOf("ca-etcd-peer", "etcd-peer")
	})
	for _, p := range s.members {
		p.peerURL = strings.Replace(p.peerURL, "http:", "https:", 1)
	}
	s.members[0].stop()
	s.members[0].start()
	kit.EventuallyTrue(t, "the first member uses peer certificates", func() bool { return w.member(0).TLS })
	s.members[1].start()
	s.members[2].start()
	w.eventually(druidv1alpha1.ConditionTypeAllMembersReady, "True")
	quorum := w.watchQuorum()
	l.goesOn()

	// The process of the leader is killed.
	leader := w.leader()
	s.members[leader].kill()
	l.goesOn()
	s.members[leader].start()
	s.members[leader].eventuallyReady()

	// Volumes are lost one after the other, including that of the member that formed the cluster.
	for _, i := range []int32{0, 2} {
		before := w.member(i).Holder.ID
		s.members[i].kill()
		s.members[i].lose()
		l.goesOn()
		s.members[i].start()
		s.members[i].eventuallyReady()
		kit.EventuallyTrue(t, s.members[i].name+" has another identifier", func() bool {
			m := w.member(i)
			return m.Holder.ID != before && m.State.Reason == ""
		})
		l.goesOn()
	}

	// All members are replaced in the order of the StatefulSet controller.
	for _, i := range []int{2, 1, 0} {
		s.members[i].stop()
		s.members[i].start()
		s.members[i].eventuallyReady()
		l.goesOn()
	}
	w.eventually(druidv1alpha1.ConditionTypeAllMembersReady, "True")
	w.defragmented()
	l.goesOn()
	l.verify()
	if reasons := quorum(); !slices.Equal(reasons, []string{"Quorate"}) {
		t.Errorf("the condition Ready had the reasons %v", reasons)
	}
	answer, err := s.connect(s.members...).MemberList(t.Context())
	kit.Must(t, err)
	if len(answer.Members) != 3 {
		t.Errorf("the cluster has the members %v", answer.Members)
	}
	w.eventually(druidv1alpha1.ConditionTypeClusterIDMismatch, "False")
}

// TestKilledWhileItJoins kills a member that has lost its data at each step of rejoining. It always rejoins.
func TestKilledWhileItJoins(t *testing.T) {
	w := newWorld(t)
	s := newSite(w, 3)
	_, stop := w.startOperator("v1")
	defer stop()
	w.declare(func(e *druidv1alpha1.Etcd) {
		withTLS(e)
		e.Spec.Replicas, e.Spec.ETCD.PeerURLTLS = 3, certificatesOf("ca-etcd-peer", "etcd-peer")
	})
	for _, p := range s.members {
		p.peerURL = strings.Replace(p.peerURL, "http:", "https:", 1)
		p.start() // concurrently, as the StatefulSet does
	}
	w.eventually(druidv1alpha1.ConditionTypeAllMembersReady, "True")
	l := s.startLoad()
	p := s.members[0]
	logged := func(text string) func() bool {
		before := strings.Count(p.log.String(), text)
		return func() bool { return strings.Count(p.log.String(), text) > before }
	}
	for name, reached := range map[string]func() func() bool{
		"before it is removed": func() func() bool { return func() bool { return p.ready() != "" } },
		"after it is removed":  func() func() bool { return logged("Removing the previous instance of this member") },
		"after it is added":    func() func() bool { return logged("Starting etcd") },
		"as a learner with data": func() func() bool {
			return func() bool {
				files, _ := filepath.Glob(filepath.Join(p.directory, "new.etcd", "member", "wal", "*.wal"))
				return len(files) > 0
			}
		},
	} {
		p.kill()
		p.lose()
		there := reached()
		p.start()
		kit.EventuallyTrue(t, name, there)
		p.kill()
		l.goesOn()
		p.start()
		p.eventuallyReady()
	}
	l.goesOn()
	l.verify()
	answer, err := s.connect(s.members...).MemberList(t.Context())
	kit.Must(t, err)
	voters := 0
	for _, m := range answer.Members {
		if !m.IsLearner {
			voters++
		}
	}
	if len(answer.Members) != 3 || voters != 3 {
		t.Errorf("the cluster has the members %v", answer.Members)
	}
}

// defragmented defragments all members once.
func (w *world) defragmented() {
	w.Helper()
	leader := etcd.MemberName(name, w.leader())
	w.change(func(e *druidv1alpha1.Etcd) { e.Spec.ETCD.DefragmentationSchedule = ptr.To("* * * * *") })
	kit.Eventually(w, "all members are defragmented, and the ledger contains the task", func() string {
		var asked []string
		for i := range int32(3) {
			m := w.member(i)
			if m.Defragment == "" || m.Defragmented == "" || m.DefragmentError != "" {
				asked = append(asked, m.Name+" "+m.Defragment+" "+m.DefragmentError)
			}
			if m.Name == leader && m.Defragment != "" && len(asked) > 1 {
				w.Errorf("the leader is defragmented before %v", asked)
			}
		}
		if len(asked) > 0 {
			return strings.Join(asked, ", ")
		}
		ledger := &corev1.Secret{}
		if !w.get(ledger, etcd.LedgerKey(client.ObjectKey{Namespace: w.namespace, Name: name}).Name) ||
			!strings.Contains(string(ledger.Data["ledger.json"]), etcd.TaskDefragment) {
			return "the ledger does not contain the task"
		}
		return ""
	})
	w.change(func(e *druidv1alpha1.Etcd) { e.Spec.ETCD.DefragmentationSchedule = nil })
}

// TestLostVolumeOfTheOnlyMember checks that the loss of all data is reported, and that an empty cluster replaces them only
// after a user accepts the loss.
func TestLostVolumeOfTheOnlyMember(t *testing.T) {
	w := newWorld(t)
	s := newSite(w, 1)
	_, stop := w.startOperator("v1")
	defer stop()
	w.declare(withTLS)
	p := s.members[0]
	p.start()
	p.eventuallyReady()
	w.eventually(druidv1alpha1.ConditionTypeReady, "True Quorate")
	_, err := s.connect(p).Put(t.Context(), "a", "b")
	kit.Must(t, err)
	first := w.member(0).Holder.ClusterID

	for range 2 { // also after a restart of the operator and a deletion of the Lease
		p.kill()
		p.lose()
		p.start()
		kit.EventuallyTrue(t, "the member reports that its data are lost", func() bool { return strings.Contains(p.ready(), "DataLost") })
		w.eventually(druidv1alpha1.ConditionTypeReady, "False DataLost")
		if files, _ := filepath.Glob(filepath.Join(p.directory, "new.etcd", "*")); len(files) > 0 {
			t.Errorf("a new cluster has the files %v", files)
		}
		p.kill()
		stop()
		kit.Must(t, w.client.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1ObjectMeta(w.namespace, p.name)}))
		_, stop = w.startOperator("v1") // stopped at the end of the test
	}
	p.start()
	kit.EventuallyTrue(t, "the Lease reports that the data are lost", func() bool { return w.member(0).State.Reason == lease.ReasonDataLost })
	w.eventually(druidv1alpha1.ConditionTypeReady, "False DataLost")
	e := w.etcd()
	if !slices.ContainsFunc(e.Status.LastErrors, func(err druidv1alpha1.LastError) bool {
		return err.Code == "ERR_DATA_LOST" && strings.Contains(err.Description, etcd.AnnotationAcceptDataLoss+"="+first)
	}) {
		t.Errorf("lastErrors: %+v", e.Status.LastErrors)
	}
	kit.Change(t, w.client, e, func() { e.Annotations = map[string]string{etcd.AnnotationAcceptDataLoss: first} })
	p.eventuallyReady()
	w.eventually(druidv1alpha1.ConditionTypeReady, "True Quorate")
	if second := w.member(0).Holder.ClusterID; second == first {
		t.Errorf("the new cluster has the old identifier %s", second)
	}
	p.kill()
	p.lose()
	p.start() // the annotation still exists, but names the previous cluster
	w.eventually(druidv1alpha1.ConditionTypeReady, "False DataLost")
}

// TestWithoutAPIServer checks that a member with data starts without the API server, which may be the one that it serves. A
// member without data waits.
func TestWithoutAPIServer(t *testing.T) {
	w := newWorld(t)
	s := newSite(w, 1)
	_, stop := w.startOperator("v1")
	defer stop()
	w.declare(withTLS)
	unreachable := strings.Replace(string(w.cp.Kubeconfig()), hostOf(w), "https://127.0.0.1:1", 1)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, os.WriteFile(file, []byte(unreachable), 0o600))

	p := s.members[0]
	p.startWith(file)
	kit.EventuallyTrue(t, "the member reports why it waits", func() bool { return strings.Contains(p.ready(), "connection refused") })
	if files, _ := filepath.Glob(filepath.Join(p.directory, "new.etcd", "*")); len(files) > 0 {
		t.Errorf("a new cluster has the files %v", files)
	}
	p.kill()
	p.start()
	p.eventuallyReady()
	p.kill()
	p.startWith(file)
	p.eventuallyReady()
	p.kill()
	// Until the Lease records that the cluster was formed, a loss of its data would not be detected.
	kit.Must(t, os.Remove(filepath.Join(p.directory, "member.json")))
	p.startWith(file)
	kit.EventuallyTrue(t, "the member is not ready", func() bool {
		return strings.Contains(p.ready(), "the Lease does not record the creation of the cluster yet")
	})
}

func hostOf(w *world) string { return w.cp.Config().Host }

func metav1ObjectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
