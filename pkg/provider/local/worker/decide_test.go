package worker

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// deploymentOf returns a deployment with the class "new".
func deploymentOf(replicas int, surge, unavailable string) Deployment {
	d := Deployment{Name: "d", Class: "new", Least: replicas, Most: replicas}
	d.Pool.Name, d.MaxSurge, d.MaxUnavailable = "p", intstr.Parse(surge), intstr.Parse(unavailable)
	return d
}

// machinesOf parses machines, such as "a:new:ready b:old:pending". Each is a minute older than the next one.
func machinesOf(t *testing.T, text string) []Machine {
	t.Helper()
	var machines []Machine
	fields := strings.Fields(text)
	for i, one := range fields {
		parts := strings.Split(one, ":")
		m := Machine{Name: parts[0], Deployment: "d", Class: parts[1], HasNode: true, Created: now.Add(-time.Duration(len(fields)-i) * time.Minute)}
		for _, state := range parts[2:] {
			switch state {
			case "ready":
				m.Ready, m.WasReady = true, true
			case "pending":
			case "failed":
				m.Failed = true
			case "late": // not ready in time
				m.Created = now.Add(-time.Hour)
			case "sick": // no longer ready, for a minute
				m.WasReady, m.Changed = true, now.Add(-time.Minute)
			case "broken": // no longer ready, for too long
				m.WasReady, m.Changed = true, now.Add(-time.Hour)
			case "draining":
				m.Draining = now.Add(-time.Minute)
			case "stuck":
				m.Draining = now.Add(-3 * time.Hour)
			case "empty":
				m.Drained = true
			case "deleting":
				m.Deleting = true
			case "alone":
				m.HasNode = false
			default:
				t.Fatalf("%q is not a state", state)
			}
		}
		machines = append(machines, m)
	}
	return machines
}

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name                string
		replicas            int
		surge, unavailable  string
		machines            string
		create              int
		drain, remove       string
		waiting             bool
		failed              string
		nextIn              time.Duration
		hibernated, healthy bool
	}{
		{name: "nothing is wanted, nothing exists", surge: "1", unavailable: "0"},
		{name: "all are created at once", replicas: 3, surge: "1", unavailable: "0", create: 3, waiting: true},
		{name: "at rest", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:ready b:new:ready"},
		{name: "one boots", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:ready b:new:pending", waiting: true, nextIn: 19 * time.Minute},
		{name: "one is missing", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:ready", create: 1, waiting: true},
		{name: "scaled in: the youngest goes", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:ready b:new:ready", drain: "b", waiting: true},
		{name: "scaled in: one that is not ready goes first", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:pending b:new:ready", remove: "a",
			waiting: true, nextIn: 18 * time.Minute},
		{name: "scaled to 0", surge: "1", unavailable: "0", machines: "a:new:ready b:new:ready", drain: "b a", waiting: true},
		{name: "hibernated", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:ready b:old:ready c:new:deleting", remove: "a b", waiting: true, hibernated: true},

		{name: "rolled: one more is created", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready b:old:ready", create: 1, waiting: true},
		{name: "rolled: it boots", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready b:old:ready c:new:pending", waiting: true, nextIn: 19 * time.Minute},
		{name: "rolled: it is ready, the oldest goes", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready b:old:ready c:new:ready", drain: "a", waiting: true},
		{name: "rolled: the drained one still counts", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready:draining b:old:ready c:new:ready", waiting: true,
			nextIn: 119 * time.Minute},
		{name: "rolled: the empty one goes", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready:draining:empty b:old:ready c:new:ready", remove: "a", waiting: true},
		{name: "rolled: the next one is created while it goes", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:ready:deleting b:old:ready c:new:ready", create: 1, waiting: true},
		{name: "rolled: the last one goes", replicas: 2, surge: "1", unavailable: "0", machines: "b:old:ready c:new:ready d:new:ready", drain: "b", waiting: true},
		{name: "rolled: only the end of a machine is missing", replicas: 2, surge: "1", unavailable: "0", machines: "b:old:deleting c:new:ready d:new:ready", waiting: true},
		{name: "rolled without surge", replicas: 2, surge: "0", unavailable: "1", machines: "a:old:ready b:old:ready", drain: "a", waiting: true},
		{name: "rolled without surge: created when there is room", replicas: 2, surge: "0", unavailable: "1", machines: "a:old:ready:deleting b:old:ready", create: 1, waiting: true},
		{name: "rolled with neither", replicas: 2, surge: "0", unavailable: "0", machines: "a:old:ready b:old:ready", drain: "a", waiting: true},
		{name: "rolled by half", replicas: 4, surge: "50%", unavailable: "25%", machines: "a:old:ready b:old:ready c:old:ready d:old:ready", create: 2, drain: "a", waiting: true},
		{name: "rolled: what is not ready goes at once", replicas: 2, surge: "1", unavailable: "0", machines: "a:old:pending b:old:ready", create: 1, remove: "a", waiting: true,
			nextIn: 18 * time.Minute},
		{name: "rolled: nobody is evicted from a machine without a node", replicas: 1, surge: "1", unavailable: "0", machines: "a:old:ready:alone b:new:ready", remove: "a", waiting: true},
		{name: "rolled back", replicas: 1, surge: "1", unavailable: "0", machines: "a:old:ready b:new:ready c:old:pending", drain: "a", remove: "c", waiting: true, nextIn: 19 * time.Minute},

		{name: "a drain that takes too long ends", replicas: 1, surge: "1", unavailable: "0", machines: "a:old:ready:stuck b:new:ready", remove: "a", waiting: true},
		{name: "one is not ready in time", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:pending:late", create: 1, remove: "a", waiting: true, failed: "machine a"},
		{name: "one has ended", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:failed b:new:ready", create: 1, remove: "a", waiting: true, failed: "machine a"},
		{name: "one was ready and gets time", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:sick", waiting: true, nextIn: 9 * time.Minute},
		{name: "one was ready for too long ago", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:broken", create: 1, remove: "a", waiting: true, failed: "machine a"},
		{name: "broken ones are replaced one at a time", replicas: 2, surge: "1", unavailable: "0", machines: "a:new:broken b:new:broken", create: 1, remove: "a", waiting: true, failed: "machine a"},
		{name: "health is not looked at", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:broken", waiting: true, healthy: true},
		{name: "but an end is", replicas: 1, surge: "1", unavailable: "0", machines: "a:new:failed", create: 1, remove: "a", waiting: true, failed: "machine a", healthy: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := deploymentOf(test.replicas, test.surge, test.unavailable)
			if test.healthy {
				d.MachineControllerManagerSettings = &gardencorev1beta1.MachineControllerManagerSettings{DisableHealthTimeout: ptr.To(true)}
			}
			got, err := decide(d, machinesOf(t, test.machines), test.hibernated, now)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Create) != test.create || strings.Join(got.Drain, " ") != test.drain || strings.Join(got.Delete, " ") != test.remove {
				t.Errorf("creates %v, drains %v, deletes %v, want %d, %q, %q", got.Create, got.Drain, got.Delete, test.create, test.drain, test.remove)
			}
			if (got.Waiting != "") != test.waiting || !strings.HasPrefix(got.Failed, test.failed) || got.Failed != "" && test.failed == "" {
				t.Errorf("waits for %q, failed %q, want %t, %q", got.Waiting, got.Failed, test.waiting, test.failed)
			}
			if next := got.Next; next.IsZero() != (test.nextIn == 0) || !next.IsZero() && next.Sub(now) != test.nextIn {
				t.Errorf("next in %s, want %s", next.Sub(now), test.nextIn)
			}
		})
	}
}

func TestDecideInvalid(t *testing.T) {
	for _, d := range []Deployment{deploymentOf(1, "x", "0"), deploymentOf(1, "0", "x")} {
		if _, err := decide(d, nil, false, now); err == nil || !strings.Contains(err.Error(), "of pool p") {
			t.Errorf("%v: %v", d.MaxSurge, err)
		}
	}
}

// TestDecideConverges alternates random events and decisions. No decision may lead to too many machines or to too few ready
// ones, and in the end all machines have the new class.
func TestDecideConverges(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		replicas, surge, unavailable := random.Intn(5), random.Intn(3), random.Intn(3)
		d := deploymentOf(replicas, fmt.Sprint(surge), fmt.Sprint(unavailable))
		if surge+unavailable == 0 {
			unavailable = 1
		}
		var machines []Machine
		for i := range replicas {
			machines = append(machines, Machine{Name: fmt.Sprintf("old-%d", i), Class: "old", Ready: true, WasReady: true, HasNode: true, Created: now})
		}
		done := false
		for step := 0; step < 500 && !done; step++ {
			decision, err := decide(d, machines, false, now)
			if err != nil {
				t.Fatal(err)
			}
			before := countReady(machines)
			for _, name := range decision.Create {
				machines = append(machines, Machine{Name: name, Class: d.Class, HasNode: true, Created: now})
			}
			for i := range machines {
				switch m := &machines[i]; {
				case slices.Contains(decision.Drain, m.Name):
					m.Draining = now
				case slices.Contains(decision.Delete, m.Name):
					m.Deleting = true
				}
			}
			if after := countReady(machines); after < before && after < replicas-unavailable {
				t.Fatalf("seed %d, step %d: %d of %d are ready after %+v", seed, step, after, replicas, decision)
			}
			if count := countExisting(machines); count > replicas+surge && len(decision.Create) > 0 {
				t.Fatalf("seed %d, step %d: %d machines for %d replicas and a surge of %d", seed, step, count, replicas, surge)
			}
			machines = happen(random, machines)
			done = decision.Waiting == ""
		}
		if !done || len(machines) != replicas {
			t.Errorf("seed %d: want %d machines in the end, got %+v", seed, replicas, machines)
		}
	}
}

// happen applies at most one random event to each machine.
func happen(random *rand.Rand, machines []Machine) []Machine {
	var left []Machine
	for _, m := range machines {
		happens := random.Intn(2) == 0
		switch {
		case m.Deleting && happens:
			continue
		case !m.Draining.IsZero():
			m.Drained = m.Drained || happens
		case !m.Ready && happens:
			m.Ready, m.WasReady = true, true
		}
		left = append(left, m)
	}
	return left
}

func countReady(machines []Machine) int {
	count := 0
	for _, m := range machines {
		if m.Ready && m.staying() {
			count++
		}
	}
	return count
}

func countExisting(machines []Machine) int {
	count := 0
	for _, m := range machines {
		if !m.Deleting {
			count++
		}
	}
	return count
}

func TestNames(t *testing.T) {
	d := Deployment{Name: "d", Class: "abc", Restored: []string{"d-abc-7", "d-abc-1"}}
	if got := newNames(d, []Machine{{Name: "d-abc-0"}, {Name: "d-abc-1"}}, d.Restored, 3); !slices.Equal(got, []string{"d-abc-7", "d-abc-2", "d-abc-3"}) {
		t.Errorf("new names are %v", got)
	}
	long := machineName(strings.Repeat("x", 60), "abcde", 123)
	if name := prefixMachine + long; len(name) != maxNameLength || !strings.HasSuffix(name, "-abcde-123") {
		t.Errorf("%s has %d characters", name, len(name))
	}
	if other := machineName(strings.Repeat("x", 61), "abcde", 123); other == long {
		t.Errorf("two deployments have the machine %s", other)
	}
}

func TestDeployments(t *testing.T) {
	pool := Pool{WorkerPool: extensionsv1alpha1.WorkerPool{Name: "p", Minimum: 4, Maximum: 5, Zones: []string{"a", "b", "c"}}, Image: "image"}
	other := Pool{WorkerPool: extensionsv1alpha1.WorkerPool{Name: "q", Minimum: 1, Maximum: 1}}
	all, err := deployments("shoot--x--y", "region", []Pool{pool, other})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprintf("%s %s %d-%d", d.Name, d.Zone, d.Least, d.Most))
	}
	want := []string{"shoot--x--y-p-z1 a 2-2", "shoot--x--y-p-z2 b 1-2", "shoot--x--y-p-z3 c 1-1", "shoot--x--y-q-z1 region 1-1"}
	if !slices.Equal(got, want) {
		t.Errorf("deployments %v, want %v", got, want)
	}
}

// TestClass checks which changes replace machines.
func TestClass(t *testing.T) {
	classOfChanged := func(change func(*Pool)) string {
		pool := Pool{Image: "image", UserData: []byte("a"), WorkerPool: extensionsv1alpha1.WorkerPool{
			Name: "p", MachineType: "small", NodeAgentSecretName: ptr.To("s"), MachineImage: extensionsv1alpha1.MachineImage{Name: "linux", Version: "1"},
		}}
		change(&pool)
		class, err := classOf(pool)
		if err != nil || len(class) != classLength {
			t.Fatalf("%q, %v", class, err)
		}
		return class
	}
	same := classOfChanged(func(*Pool) {})
	for name, test := range map[string]struct {
		change func(*Pool)
		same   bool
	}{
		"user data":              {func(p *Pool) { p.UserData = []byte("b") }, true},
		"bounds":                 {func(p *Pool) { p.Minimum, p.Maximum = 3, 4 }, true},
		"labels":                 {func(p *Pool) { p.Labels = map[string]string{"a": "b"} }, true},
		"configuration of nodes": {func(p *Pool) { p.NodeAgentSecretName = ptr.To("t") }, false},
		"container image":        {func(p *Pool) { p.Image = "other" }, false},
		"machine image":          {func(p *Pool) { p.MachineImage.Version = "2" }, false},
		"machine type":           {func(p *Pool) { p.MachineType = "large" }, false},
		"volume":                 {func(p *Pool) { p.Volume = &extensionsv1alpha1.Volume{Size: "5Gi"} }, false},
		"user data alone":        {func(p *Pool) { p.NodeAgentSecretName, p.UserData = nil, []byte("b") }, false},
	} {
		if got := classOfChanged(test.change); (got == same) != test.same {
			t.Errorf("%s: the class is %s, previously %s", name, got, same)
		}
	}
}

func TestTimeouts(t *testing.T) {
	d := deploymentOf(1, "1", "0")
	d.MachineControllerManagerSettings = &gardencorev1beta1.MachineControllerManagerSettings{
		MachineCreationTimeout: &metav1.Duration{Duration: time.Minute}, MachineDrainTimeout: &metav1.Duration{Duration: 2 * time.Minute},
	}
	if creation, health, drain := d.timeouts(); creation != time.Minute || health != defaultHealthTimeout || drain != 2*time.Minute {
		t.Errorf("time-outs are %s, %s, %s", creation, health, drain)
	}
}
