package care

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// component returns a ManagedResource. It belongs to the control plane if it has a class.
func component(name, class string, healthy resourcesv1alpha1.ConditionStatus, change ...func(*resourcesv1alpha1.ManagedResource)) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: name, Generation: 2, Labels: map[string]string{}}}
	if class != "" {
		mr.Spec.Class = ptr.To(class)
	}
	mr.Status.ObservedGeneration = 2
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: "True"}, {Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Reason: "DeploymentUnhealthy", Message: "no Pod"},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: "False"},
	}
	for _, each := range change {
		each(&mr)
	}
	return mr
}

// healthy returns the observation of a healthy Shoot, with changes.
func healthy(change ...func(*Observation)) Observation {
	o := Observation{
		Shoot:      &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", LastUpdateTime: metav1.NewTime(now.Add(-time.Hour))}}},
		Components: []resourcesv1alpha1.ManagedResource{component("kube-apiserver", "seed", "True"), component("shoot-core-system", "", "True")},
		Required:   []string{"kube-apiserver"}, Asked: true, Cluster: &Cluster{}, Authorities: map[string]time.Time{}, Now: now,
	}
	for _, each := range change {
		each(&o)
	}
	return o
}

// also adds a ManagedResource.
func also(mr resourcesv1alpha1.ManagedResource) func(*Observation) {
	return func(o *Observation) { o.Components = append(o.Components, mr) }
}

func labelled(kind corev1beta1.ConditionType) func(*resourcesv1alpha1.ManagedResource) {
	return func(mr *resourcesv1alpha1.ManagedResource) { mr.Labels[constants.LabelConditionType] = string(kind) }
}

// TestConditions lists the differences to a healthy Shoot: the API server (0), the control plane (1), observability (2) and
// system components (3).
func TestConditions(t *testing.T) {
	sick := func(o *Observation) { o.Components[0] = component("kube-apiserver", "seed", "False") }
	last := func(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) func(*Observation) {
		return func(o *Observation) {
			o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
		}
	}
	type differ = map[int]string
	for name, test := range map[string]struct {
		change []func(*Observation)
		want   differ
	}{
		"healthy":              {nil, nil},
		"does not answer":      {[]func(*Observation){func(o *Observation) { o.Error = errors.New("no") }}, differ{0: "False HealthzRequestFailed"}},
		"not running":          {[]func(*Observation){func(o *Observation) { o.Asked = false }}, differ{0: "False APIServerDown", 3: "Unknown ConditionCheckError"}},
		"sick":                 {[]func(*Observation){sick}, differ{1: "False DeploymentUnhealthy"}},
		"a part is missing":    {[]func(*Observation){func(o *Observation) { o.Components = o.Components[1:] }}, differ{1: "False DeploymentMissing"}},
		"an Etcd is missing":   {[]func(*Observation){func(o *Observation) { o.Required = append(o.Required, "etcd-main") }}, differ{1: "False EtcdMissing"}},
		"nothing in cluster":   {[]func(*Observation){func(o *Observation) { o.Components = o.Components[:1] }}, differ{3: "Unknown ConditionInitialized"}},
		"not observed":         {[]func(*Observation){func(o *Observation) { o.Components[1].Generation++ }}, differ{3: "False OutdatedStatus"}},
		"of an extension":      {[]func(*Observation){also(component("extension-x", "seed", "False"))}, differ{1: "False DeploymentUnhealthy"}},
		"sent to the cluster":  {[]func(*Observation){also(component("x", "seed", "False", labelled("SystemComponentsHealthy")))}, differ{3: "False DeploymentUnhealthy"}},
		"sent to the plane":    {[]func(*Observation){also(component("x", "", "False", labelled("ControlPlaneHealthy")))}, differ{1: "False DeploymentUnhealthy"}},
		"sent to monitoring":   {[]func(*Observation){also(component("x", "", "False", labelled("ObservabilityComponentsHealthy")))}, differ{2: "False DeploymentUnhealthy"}},
		"sent elsewhere":       {[]func(*Observation){also(component("x", "seed", "False", labelled("Other")))}, nil},
		"being created":        {[]func(*Observation){sick, last("Create", "Error")}, differ{1: "Progressing DeploymentUnhealthy"}},
		"being deleted":        {[]func(*Observation){sick, last("Delete", "Processing")}, differ{1: "Progressing DeploymentUnhealthy"}},
		"being changed":        {[]func(*Observation){sick, last("Reconcile", "Processing")}, differ{1: "Progressing DeploymentUnhealthy"}},
		"changed with errors":  {[]func(*Observation){sick, last("Reconcile", "Processing"), func(o *Observation) { o.Shoot.Status.LastErrors = make([]corev1beta1.LastError, 1) }}, differ{1: "False DeploymentUnhealthy"}},
		"change failed":        {[]func(*Observation){sick, last("Reconcile", "Error")}, differ{1: "False DeploymentUnhealthy"}},
		"not begun":            {[]func(*Observation){sick, func(o *Observation) { o.Shoot.Status.LastOperation = nil }}, differ{1: "Progressing DeploymentUnhealthy"}},
		"hibernated":           {[]func(*Observation){sick, func(o *Observation) { o.Hibernated, o.Asked = true, false }}, differ{0: "True ConditionNotChecked", 1: "True ConditionNotChecked", 2: "True ConditionNotChecked", 3: "True ConditionNotChecked"}},
		"hibernated, reported": {[]func(*Observation){reports("Worker", "False", 0), func(o *Observation) { o.Hibernated, o.Asked = true, false }}, differ{0: "True ConditionNotChecked", 1: "True ConditionNotChecked", 2: "True ConditionNotChecked", 3: "True ConditionNotChecked"}},
	} {
		conditions, next := healthy(test.change...).Conditions()
		want := []string{"True HealthzRequestSucceeded", "True ControlPlaneRunning", "True ObservabilityComponentsRunning", "True SystemComponentsRunning"}
		for i, text := range test.want {
			want[i] = text
		}
		var got []string
		for _, condition := range conditions {
			got = append(got, string(condition.Status)+" "+condition.Reason)
		}
		if !slices.Equal(got, want) || !next.IsZero() {
			t.Errorf("%s: %q, next %s, want %q", name, got, next, want)
		}
	}
}

// TestThreshold checks that a failure is reported as Progressing for some time, and that the times of a condition change only
// with its content.
func TestThreshold(t *testing.T) {
	fail := func(o *Observation) {
		o.Error, o.Limits.Thresholds = errors.New("no"), map[corev1beta1.ConditionType]time.Duration{corev1beta1.ShootAPIServerAvailable: time.Minute}
	}
	conditions, _ := healthy().Conditions()
	o := healthy(fail, func(o *Observation) { o.Shoot.Status.Conditions = conditions })
	first, next := o.Conditions()
	if first[0].Status != corev1beta1.ConditionProgressing || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, next %s", first[0], next)
	}
	o.Shoot.Status.Conditions, o.Now = first, now.Add(30*time.Second)
	if again, _ := o.Conditions(); !again[0].LastUpdateTime.Equal(&first[0].LastUpdateTime) {
		t.Errorf("the time of an unchanged condition changed: %+v", again[0])
	}
	o.Now = now.Add(time.Minute)
	late, _ := o.Conditions()
	if late[0].Status != corev1beta1.ConditionFalse {
		t.Errorf("%+v", late[0])
	}
	o.Shoot.Status.Conditions, o.Shoot.Status.LastOperation.LastUpdateTime = late, metav1.NewTime(o.Now.Add(-time.Second))
	if after, next := o.Conditions(); after[0].Status != corev1beta1.ConditionProgressing || !next.Equal(o.Now.Add(59*time.Second)) {
		t.Errorf("after an operation: %+v, next %s", after[0], next)
	}
}

// TestExplanation checks that a changed message is written at most every ten seconds, because it changes with every component
// that starts. A changed status is written immediately.
func TestExplanation(t *testing.T) {
	o := healthy(also(component("x", "seed", "False")))
	o.Shoot.Status.Conditions, _ = o.Conditions()
	o.Components = append(o.Components, component("y", "seed", "False"))
	o.Now = now.Add(time.Second)
	again, next := o.Conditions()
	if again[1].Message != o.Shoot.Status.Conditions[1].Message || !next.Equal(now.Add(explainEvery)) {
		t.Errorf("%+v, next %s", again[1], next)
	}
	o.Now = now.Add(explainEvery)
	if later, _ := o.Conditions(); later[1].Message == o.Shoot.Status.Conditions[1].Message || !later[1].LastTransitionTime.Equal(&again[1].LastTransitionTime) {
		t.Errorf("%+v", later[1])
	}
	o.Components, o.Now = o.Components[:2], now.Add(time.Second)
	if well, _ := o.Conditions(); well[1].Status != corev1beta1.ConditionTrue {
		t.Errorf("%+v", well[1])
	}
}

// TestRollout checks that a rollout may take some time.
func TestRollout(t *testing.T) {
	rolling := component("x", "", "True", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Status.Conditions[2] = resourcesv1alpha1.Condition{Type: resourcesv1alpha1.ResourcesProgressing, Status: "True", Reason: "DaemonSetProgressing", LastTransitionTime: metav1.NewTime(now)}
	})
	for name, test := range map[string]struct {
		within, after time.Duration
		want          string
		next          time.Time
	}{
		"no time":  {0, time.Second, "False DaemonSetProgressing", time.Time{}},
		"in time":  {time.Hour, time.Minute, "True SystemComponentsRunning", now.Add(time.Hour)},
		"too long": {time.Hour, time.Hour, "False ProgressingRolloutStuck", time.Time{}},
	} {
		conditions, next := healthy(also(rolling), func(o *Observation) { o.Limits.Rollout, o.Now = test.within, now.Add(test.after) }).Conditions()
		if got := string(conditions[3].Status) + " " + conditions[3].Reason; got != test.want || !next.Equal(test.next) {
			t.Errorf("%s: %s, next %s, want %s, %s", name, got, next, test.want, test.next)
		}
	}
}

// reports adds the report of an extension about system components. ago is the age of the extension's heartbeat. If it is
// negative, there was no heartbeat.
func reports(kind string, status corev1beta1.ConditionStatus, ago time.Duration) func(*Observation) {
	return func(o *Observation) {
		contribution := Contribution{Kind: kind, Name: "one", Type: "local", Condition: corev1beta1.Condition{
			Type: corev1beta1.ShootSystemComponentsHealthy, Status: status, Reason: "HealthCheck", Message: kind + " says", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded},
		}}
		if ago >= 0 {
			contribution.Heartbeat = now.Add(-ago)
		}
		o.Contributions, o.Limits.Stale = append(o.Contributions, contribution), 5*time.Minute
	}
}

// TestContributions checks that reports of extensions count as long as they send heartbeats, and that the worst report decides.
func TestContributions(t *testing.T) {
	quota := []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}
	in := now.Add
	for name, test := range map[string]struct {
		change  []func(*Observation)
		want    string
		message string
		codes   []corev1beta1.ErrorCode
		next    time.Time
	}{
		"well":          {[]func(*Observation){reports("Worker", "True", time.Minute)}, "True SystemComponentsRunning", "All system components are healthy.", nil, in(4 * time.Minute)},
		"progressing":   {[]func(*Observation){reports("Worker", "Progressing", 0)}, "Progressing WorkerHealthCheck", "Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"unhealthy":     {[]func(*Observation){reports("Worker", "False", 0)}, "False WorkerUnhealthyReport", "Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"not checked":   {[]func(*Observation){reports("Worker", "Unknown", 0)}, "False WorkerUnhealthyReport", "Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"silent":        {[]func(*Observation){reports("Worker", "True", 5*time.Minute)}, "Unknown WorkerOutdatedHealthCheckReport", "Worker one: the report of the extension of type local is outdated: the extension has not renewed its heartbeat since 2026-11-23T11:55:00Z", nil, time.Time{}},
		"never living":  {[]func(*Observation){reports("Worker", "False", -1)}, "Unknown WorkerOutdatedHealthCheckReport", "Worker one: the report of the extension of type local is outdated: the extension has never renewed its heartbeat", nil, time.Time{}},
		"any age":       {[]func(*Observation){reports("Worker", "True", time.Hour), func(o *Observation) { o.Limits.Stale = 0 }}, "True SystemComponentsRunning", "All system components are healthy.", nil, time.Time{}},
		"worst of two":  {[]func(*Observation){reports("Network", "Progressing", 0), reports("Worker", "False", 0)}, "False WorkerUnhealthyReport", "Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"two":           {[]func(*Observation){reports("Network", "False", 0), reports("Worker", "False", 0)}, "False NetworkUnhealthyReport", "Network one of type local: Network says; Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"with its own":  {[]func(*Observation){func(o *Observation) { o.Components[1].Generation++ }, reports("Worker", "False", 0)}, "False OutdatedStatus", "ManagedResource shoot--dev--one/shoot-core-system: generation 3 has not been observed; Worker one of type local: Worker says", quota, in(5 * time.Minute)},
		"another type":  {[]func(*Observation){reports("Worker", "False", 0), func(o *Observation) { o.Contributions[0].Condition.Type = "Other" }}, "True SystemComponentsRunning", "All system components are healthy.", nil, time.Time{}},
		"not a failure": {[]func(*Observation){reports("Worker", "Progressing", 0), func(o *Observation) { o.Asked = false }}, "Unknown ConditionCheckError", messageNotServing, nil, in(5 * time.Minute)},
	} {
		conditions, next := healthy(test.change...).Conditions()
		got := conditions[3]
		if string(got.Status)+" "+got.Reason != test.want || got.Message != test.message || !slices.Equal(got.Codes, test.codes) || !next.Equal(test.next) {
			t.Errorf("%s: %+v, next %s", name, got, next)
		}
	}
}
