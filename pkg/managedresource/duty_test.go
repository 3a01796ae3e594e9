package managedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestDutyOf(t *testing.T) {
	const ignore, operation = "resources.gardener.cloud/ignore", "gardener.cloud/operation"
	now := metav1.Now()
	for name, test := range map[string]struct {
		class       string // of the ManagedResource
		configured  string // "resources" if empty
		finalizers  []string
		annotations map[string]string
		deleting    bool
		want        duty
	}{
		"new":                                  {want: dutyApply},
		"known":                                {finalizers: []string{ownFinalizer}, want: dutyApply},
		"with a foreign finalizer":             {finalizers: []string{"example.com/x", ownFinalizer}, want: dutyApply},
		"deleting":                             {finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"deleting, done":                       {finalizers: []string{"example.com/x"}, deleting: true, want: dutyNone},
		"another class":                        {class: "blue", want: dutyNone},
		"another class, held by it":            {class: "blue", finalizers: []string{blue}, want: dutyNone},
		"went to another class":                {class: "blue", finalizers: []string{ownFinalizer}, want: dutyCleanUp},
		"went to another class, taken over":    {class: "blue", finalizers: []string{blue, ownFinalizer}, want: dutyCleanUp},
		"went to another class, deleting":      {class: "blue", finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"came from another class":              {finalizers: []string{blue}, want: dutyNone},
		"came from another class, handed over": {finalizers: []string{ownFinalizer}, want: dutyApply},
		"came from two classes, both held":     {finalizers: []string{ownFinalizer, blue}, want: dutyNone},
		"came from another class, deleting":    {finalizers: []string{blue}, deleting: true, want: dutyNone},
		"own class":                            {class: "blue", configured: "blue", want: dutyApply},
		"own class, held by the default":       {class: "blue", configured: "blue", finalizers: []string{ownFinalizer}, want: dutyNone},
		"own class, held by a third":           {class: "blue", configured: "blue", finalizers: []string{red}, want: dutyNone},
		"left own class":                       {configured: "blue", finalizers: []string{blue}, want: dutyCleanUp},
		"all classes":                          {class: "blue", configured: "*", want: dutyApply},
		"all classes, held by one":             {class: "blue", configured: "*", finalizers: []string{blue}, want: dutyNone},
		"all classes, deleting":                {class: "blue", configured: "*", finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"ignored":                              {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: dutyIgnore},
		"ignored, spelt otherwise":             {annotations: map[string]string{ignore: "1"}, want: dutyIgnore},
		"not ignored":                          {annotations: map[string]string{ignore: "false"}, want: dutyApply},
		"ignored, misspelt":                    {annotations: map[string]string{ignore: "yes"}, want: dutyApply},
		"ignored, of another class":            {class: "blue", annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: dutyNone},
		"ignored, deleting":                    {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"to reconcile":                         {annotations: map[string]string{operation: "reconcile"}, want: dutyApply},
		"to restore":                           {annotations: map[string]string{operation: "restore"}, want: dutyApply},
		"to migrate":                           {annotations: map[string]string{operation: "migrate"}, want: dutyApply},
		"waits for its state":                  {annotations: map[string]string{operation: "wait-for-state"}, finalizers: []string{ownFinalizer}, want: dutyNone},
		"waits for its state, deleting":        {annotations: map[string]string{operation: "wait-for-state"}, finalizers: []string{ownFinalizer}, deleting: true, want: dutyNone},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
				Finalizers: test.finalizers, Annotations: test.annotations,
			}}
			if test.class != "" {
				mr.Spec.Class = &test.class
			}
			if test.deleting {
				mr.DeletionTimestamp = &now
			}
			configured := test.configured
			if configured == "" {
				configured = resourcesv1alpha1.DefaultClass
			}
			if got := dutyOf(mr, configured); got != test.want {
				t.Errorf("got duty %d, want %d", got, test.want)
			}
		})
	}
}

const (
	ownFinalizer = "resources.gardener.cloud/gardener-resource-manager"
	blue         = ownFinalizer + "-blue"
	red          = ownFinalizer + "-red"
)
