package etcd

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

func partition(number int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &number }
}

func oldTemplate(s *appsv1.StatefulSet) { s.Annotations[annotationTemplate] = "old" }

func updatedPods(number int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = number }
}

func readyPods(number int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = number }
}

func replicas(number int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &number }
}

// TestMembersThatStop checks that an Etcd without replicas is not up to date, so that its Shoot does not hibernate, before its Pods are
// gone.
func TestMembersThatStop(t *testing.T) {
	for left, want := range map[int32]druidv1alpha1.ConditionStatus{1: druidv1alpha1.ConditionFalse, 0: druidv1alpha1.ConditionTrue} {
		in := inputs(sample(0))
		in.StatefulSet = set(t, in, func(s *appsv1.StatefulSet) { s.Status.Replicas = left })
		result, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.allUpdated(result); got.status != want {
			t.Errorf("%d Pods are left: %+v", left, got)
		}
	}
}

func TestRollout(t *testing.T) {
	all := []lease.Member{healthy(0), healthy(1), healthy(2)}
	sick := func(ordinals ...int32) []lease.Member {
		members := []lease.Member{healthy(0), healthy(1), healthy(2)}
		for _, o := range ordinals {
			members[o] = healthy(o, withState(lease.ReasonUnhealthy))
		}
		return members
	}
	busy := []lease.Member{healthy(0), healthy(1, func(m *lease.Member) { m.Defragment = "now" }), healthy(2)}
	type changes = []func(*appsv1.StatefulSet)
	for name, test := range map[string]struct {
		members   []lease.Member
		set       changes
		partition int32
		replicas  int32
		all       bool
		hold      bool
	}{
		"nothing to do":                                     {members: all, replicas: 3},
		"changed, all healthy":                              {members: all, set: changes{oldTemplate}, partition: 2, replicas: 3},
		"changed, the first unhealthy":                      {members: sick(0), set: changes{oldTemplate, readyPods(2)}, replicas: 3, hold: true},
		"changed, the first unhealthy, its Pod still ready": {members: sick(0), set: changes{oldTemplate}, replicas: 3, hold: true},
		"changed, the last unhealthy":                       {members: sick(2), set: changes{oldTemplate, readyPods(2)}, partition: 2, replicas: 3},
		"changed, no quorum":                                {members: sick(0, 1), set: changes{oldTemplate, readyPods(1)}, replicas: 3, all: true},
		"changed, a member is defragmented":                 {members: busy, set: changes{oldTemplate}, replicas: 3, hold: true},
		"changed, not observed":                             {members: all, set: changes{oldTemplate, func(s *appsv1.StatefulSet) { s.Generation = 2 }}, replicas: 3, hold: true},
		"step, Pod not replaced yet":                        {members: all, set: changes{partition(2), updatedPods(0)}, partition: 2, replicas: 3},
		"step, Pod not ready yet":                           {members: all, set: changes{partition(2), updatedPods(1), readyPods(2)}, partition: 2, replicas: 3},
		"step, member not healthy yet":                      {members: sick(2), set: changes{partition(2), updatedPods(1)}, partition: 2, replicas: 3},
		"step done":                                         {members: all, set: changes{partition(2), updatedPods(1)}, partition: 1, replicas: 3},
		"step done, another has failed":                     {members: sick(0), set: changes{partition(2), updatedPods(1), readyPods(2)}, partition: 2, replicas: 3},
		"step, defragmentation":                             {members: busy, set: changes{partition(2), updatedPods(1)}, partition: 2, replicas: 3},
		"step, no quorum":                                   {members: sick(0, 2), set: changes{partition(2), updatedPods(1), readyPods(1)}, replicas: 3, all: true},
		"last step":                                         {members: all, set: changes{partition(1), updatedPods(2)}, partition: 0, replicas: 3},
		"no quorum, nothing to roll out":                    {members: sick(0, 1, 2), set: changes{readyPods(0)}, replicas: 3},
		"woken up":                                          {members: sick(0, 1, 2), set: changes{oldTemplate, replicas(0), readyPods(0)}, replicas: 3},
		"grows":                                             {members: []lease.Member{healthy(0)}, set: changes{replicas(1), readyPods(1)}, replicas: 3},
		"grows, the others cannot start, changed": {members: []lease.Member{healthy(0), {Name: MemberName("etcd-main", 1)}, {Name: MemberName("etcd-main", 2)}},
			set: changes{oldTemplate, readyPods(1)}, partition: 1, replicas: 3},
		"the last has no Pod that is ready, and a fresh Lease, changed": {members: all, set: changes{oldTemplate, readyPods(2)}, replicas: 3, hold: true},
		"grows, first without peer certificates":                        {members: []lease.Member{healthy(0, withoutTLS)}, set: changes{oldTemplate, replicas(1), readyPods(1)}, replicas: 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(sample(3), test.members...)
			in.StatefulSet = set(t, inputs(sample(3), all...), test.set...)
			_, digest, _, err := in.template()
			if err != nil {
				t.Fatal(err)
			}
			got := in.decideRollout(digest)
			if got.replicas != test.replicas || got.all != test.all || (got.hold != "") != test.hold || !test.hold && got.partition != test.partition {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestRolloutKeepsQuorum checks all states of members and Pods. No step may replace a Pod while another of the three members is
// unhealthy and a majority exists.
func TestRolloutKeepsQuorum(t *testing.T) {
	for sick := range 8 {
		for changed := range 2 {
			for current := range int32(3) {
				for updated := range int32(4) {
					members := []lease.Member{healthy(0), healthy(1), healthy(2)}
					var ready int32
					for i := range int32(3) {
						if sick&(1<<i) != 0 {
							members[i] = healthy(i, withState(lease.ReasonUnhealthy))
						} else {
							ready++
						}
					}
					if ready < 2 {
						continue // no majority to keep
					}
					in := inputs(sample(3), members...)
					in.StatefulSet = set(t, inputs(sample(3), healthy(0), healthy(1), healthy(2)), partition(current), updatedPods(updated), readyPods(ready))
					if changed == 1 {
						oldTemplate(in.StatefulSet)
					}
					_, digest, _, _ := in.template()
					got := in.decideRollout(digest)
					replaces := got.hold == "" && (changed == 1 || got.partition < current)
					if replaces && ready < 3 && sick != 4 {
						t.Errorf("sick %b, changed %v, partition %d, updated %d: %+v", sick, changed, current, updated, got)
					}
					if replaces && sick == 4 && got.partition != 2 {
						t.Errorf("the last is sick, changed %v, partition %d, updated %d: %+v", changed, current, updated, got)
					}
				}
			}
		}
	}
}

func TestDefragmentation(t *testing.T) {
	etcd := sample(3)
	etcd.Spec.ETCD.DefragmentationSchedule = ptr.To("30 11 * * *") // created at 11:00
	in := inputs(etcd, healthy(0), healthy(1), healthy(2))
	result, err := Plan(in)
	if err != nil || len(result.Tasks) != 1 || result.Tasks[0].Value != "2027-01-02T11:30:00Z" {
		t.Fatalf("%+v, %v", result.Tasks, err)
	}
	in.Now = noon.Add(-45 * time.Minute)
	if result, err = Plan(in); err != nil || len(result.Tasks) != 0 || !result.Next.Before(noon) {
		t.Errorf("before its time: %+v, next %v, %v", result.Tasks, result.Next, err)
	}
	in.Now = noon.Add(72 * time.Hour)
	if result, err = Plan(in); err != nil || len(result.Tasks) != 1 {
		t.Errorf("missed three times: %+v, %v", result.Tasks, err)
	}
}

func TestDefragmentsTheLeaderLast(t *testing.T) {
	members := []lease.Member{healthy(0), healthy(1), healthy(2)}
	var order []string
	for range 3 {
		next, busy := nextToDefragment(members, "v")
		if busy {
			t.Fatal("a member is busy before any defragmentation")
		}
		order = append(order, next)
		for i := range members {
			if members[i].Name == next {
				members[i].Defragment = "v"
			}
		}
		if again, busy := nextToDefragment(members, "v"); again != next || !busy {
			t.Errorf("%s is being defragmented, but %s is next", next, again)
		}
		for i := range members {
			if members[i].Name == next {
				members[i].Defragmented = "v"
			}
		}
	}
	if got := strings.Join(order, " "); got != "etcd-main-1 etcd-main-2 etcd-main-0" {
		t.Errorf("order: %s", got)
	}
	if next, _ := nextToDefragment(members, "v"); next != "" {
		t.Errorf("%s is next although all members are defragmented", next)
	}
}

// TestCapacityIsThatOfTheCreation checks that a changed volume size does not block all other changes. An API server refuses a
// StatefulSet with it.
func TestCapacityIsThatOfTheCreation(t *testing.T) {
	etcd := sample(1)
	etcd.Spec.StorageCapacity = ptr.To(resource.MustParse("25Gi"))
	in := inputs(etcd)
	in.StatefulSet = set(t, in)
	etcd.Spec.StorageCapacity = ptr.To(resource.MustParse("50Gi"))
	if got := in.capacity(); got.String() != "25Gi" {
		t.Errorf("the capacity is %s", got.String())
	}
}
