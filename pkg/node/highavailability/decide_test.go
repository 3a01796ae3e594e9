package highavailability

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	webhook "github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

func TestFits(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	constraint := func(key string, action corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: action}
	}
	anyway, enforced := constraint(corev1.LabelHostname, corev1.ScheduleAnyway), constraint(corev1.LabelHostname, corev1.DoNotSchedule)
	spread := map[string]string{webhook.AnnotationHostSpread: "1"}
	for name, test := range map[string]struct {
		constraints    []corev1.TopologySpreadConstraint
		replicas       *int32
		annotations    map[string]string
		tolerance      string
		deleting       bool
		several, alone bool
	}{
		"no constraint":                                 {nil, ptr.To[int32](2), spread, "node", false, true, true},
		"only one for zones":                            {[]corev1.TopologySpreadConstraint{constraint(zone, corev1.DoNotSchedule)}, ptr.To[int32](2), spread, "zone", false, true, true},
		"not enforced, demanded by itself":              {[]corev1.TopologySpreadConstraint{anyway}, ptr.To[int32](2), spread, "", false, false, true},
		"not enforced, demanded by the namespace":       {[]corev1.TopologySpreadConstraint{anyway}, ptr.To[int32](2), nil, "node", false, false, true},
		"not enforced, and not demanded":                {[]corev1.TopologySpreadConstraint{anyway}, ptr.To[int32](2), map[string]string{webhook.AnnotationHostSpread: "no"}, "", false, true, true},
		"enforced, and demanded":                        {[]corev1.TopologySpreadConstraint{enforced}, ptr.To[int32](2), spread, "", false, true, false},
		"enforced, and not demanded":                    {[]corev1.TopologySpreadConstraint{enforced}, ptr.To[int32](2), nil, "", false, true, false},
		"the first one for nodes counts":                {[]corev1.TopologySpreadConstraint{constraint(zone, corev1.DoNotSchedule), anyway, enforced}, ptr.To[int32](2), spread, "", false, false, true},
		"a single Pod":                                  {[]corev1.TopologySpreadConstraint{enforced}, ptr.To[int32](1), spread, "", false, true, true},
		"as many as there are by default, which is one": {[]corev1.TopologySpreadConstraint{enforced}, nil, spread, "", false, true, true},
		"none":                      {[]corev1.TopologySpreadConstraint{enforced}, ptr.To[int32](0), spread, "", false, true, true},
		"one that is being deleted": {[]corev1.TopologySpreadConstraint{enforced}, ptr.To[int32](2), spread, "", true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Annotations: test.annotations}
			if test.deleting {
				meta.DeletionTimestamp = ptr.To(metav1.Now())
			}
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{TopologySpreadConstraints: test.constraints}}
			for _, obj := range []runtime.Object{
				&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: test.replicas, Template: template}},
				&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: test.replicas, Template: template}},
			} {
				one := workloadOf(obj)
				one.failureToleranceType = test.tolerance
				if several, alone := one.fits(true), one.fits(false); several != test.several || alone != test.alone {
					t.Errorf("%T fits several nodes: %t, one: %t", obj, several, alone)
				}
			}
		})
	}
	if !workloadOf(&corev1.Pod{}).fits(true) {
		t.Error("objects of other kinds must always fit")
	}
}
