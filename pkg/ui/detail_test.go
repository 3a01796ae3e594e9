package ui

import (
	"reflect"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestSummaryOfDependencies checks that names have a namespace, and that the level of a dependency is included if it is not the
// default.
func TestSummaryOfDependencies(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = "shop", "web"
	mr.Spec.DependsOn = []resourcesv1alpha1.Dependency{
		{Name: "base"}, {Namespace: "bank", Name: "api", Until: resourcesv1alpha1.UntilRolledOut, For: resourcesv1alpha1.ForCreation},
	}
	mr.Spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{{Name: "jobs"}}
	summary := summaryOf(mr)
	want := []Dependency{{Name: "shop/base"}, {Name: "bank/api", Until: resourcesv1alpha1.UntilRolledOut, For: resourcesv1alpha1.ForCreation}}
	if !reflect.DeepEqual(summary.DependsOn, want) || !reflect.DeepEqual(summary.DeletedAfter, []string{"shop/jobs"}) {
		t.Errorf("depends on %v, is deleted after %v", summary.DependsOn, summary.DeletedAfter)
	}
}
