package managedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestDutyOf(t *testing.T) {
	const ignore, operationKey = "resources.gardener.cloud/ignore", "gardener.cloud/operation"
	now := metav1.Now()
	for name, test := range map[string]struct {
		class       string // of the ManagedResource
		configured  string // "resources" if empty
		finalizers  []string
		annotations map[string]string
		deleting    bool
		want        operation
	}{
		"new":                                  {want: opApply},
		"known":                                {finalizers: []string{ownFinalizer}, want: opApply},
		"with a foreign finalizer":             {finalizers: []string{"example.com/x", ownFinalizer}, want: opApply},
		"deleting":                             {finalizers: []string{ownFinalizer}, deleting: true, want: opCleanUp},
		"deleting, done":                       {finalizers: []string{"example.com/x"}, deleting: true, want: opNone},
		"another class":                        {class: "blue", want: opNone},
		"another class, held by it":            {class: "blue", finalizers: []string{blue}, want: opNone},
		"went to another class":                {class: "blue", finalizers: []string{ownFinalizer}, want: opCleanUp},
		"went to another class, taken over":    {class: "blue", finalizers: []string{blue, ownFinalizer}, want: opCleanUp},
		"went to another class, deleting":      {class: "blue", finalizers: []string{ownFinalizer}, deleting: true, want: opCleanUp},
		"came from another class":              {finalizers: []string{blue}, want: opNone},
		"came from another class, handed over": {finalizers: []string{ownFinalizer}, want: opApply},
		"came from two classes, both held":     {finalizers: []string{ownFinalizer, blue}, want: opNone},
		"came from another class, deleting":    {finalizers: []string{blue}, deleting: true, want: opNone},
		"own class":                            {class: "blue", configured: "blue", want: opApply},
		"own class, held by the default":       {class: "blue", configured: "blue", finalizers: []string{ownFinalizer}, want: opNone},
		"own class, held by a third":           {class: "blue", configured: "blue", finalizers: []string{red}, want: opNone},
		"left own class":                       {configured: "blue", finalizers: []string{blue}, want: opCleanUp},
		"all classes":                          {class: "blue", configured: "*", want: opApply},
		"all classes, held by one":             {class: "blue", configured: "*", finalizers: []string{blue}, want: opNone},
		"all classes, deleting":                {class: "blue", configured: "*", finalizers: []string{ownFinalizer}, deleting: true, want: opCleanUp},
		"ignored":                              {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: opIgnore},
		"ignored, spelt otherwise":             {annotations: map[string]string{ignore: "1"}, want: opIgnore},
		"not ignored":                          {annotations: map[string]string{ignore: "false"}, want: opApply},
		"ignored, misspelt":                    {annotations: map[string]string{ignore: "yes"}, want: opApply},
		"ignored, of another class":            {class: "blue", annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: opNone},
		"ignored, deleting":                    {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, deleting: true, want: opCleanUp},
		"to reconcile":                         {annotations: map[string]string{operationKey: "reconcile"}, want: opApply},
		"to restore":                           {annotations: map[string]string{operationKey: "restore"}, want: opApply},
		"to migrate":                           {annotations: map[string]string{operationKey: "migrate"}, want: opApply},
		"waits for its state":                  {annotations: map[string]string{operationKey: "wait-for-state"}, finalizers: []string{ownFinalizer}, want: opNone},
		"waits for its state, deleting":        {annotations: map[string]string{operationKey: "wait-for-state"}, finalizers: []string{ownFinalizer}, deleting: true, want: opNone},
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
			if got := operationFor(mr, configured); got != test.want {
				t.Errorf("got operation %d, want %d", got, test.want)
			}
		})
	}
}

const (
	ownFinalizer = "resources.gardener.cloud/gardener-resource-manager"
	blue         = ownFinalizer + "-blue"
	red          = ownFinalizer + "-red"
)
