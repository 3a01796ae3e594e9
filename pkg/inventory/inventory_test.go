package inventory

import "testing"

// TestOwners checks who owns the parts of a cluster.
func TestOwners(t *testing.T) {
	const operator, gardenlet = true, false
	for name, test := range map[string]struct{ seed, garden, gardenWithIstio bool }{
		"network-policies":          {gardenlet, operator, operator},
		"vpa-eviction-requirements": {gardenlet, operator, operator},
		"gardener-resource-manager": {gardenlet, operator, operator},
		"vpa":                       {gardenlet, operator, operator},
		"etcd-druid":                {gardenlet, operator, operator},
		"crds-managedresources":     {gardenlet, operator, operator},
		"crds-etcd":                 {gardenlet, operator, operator},
		"crds-vpa":                  {gardenlet, operator, operator},
		"crds-istio":                {gardenlet, gardenlet, operator},
		"istio-system":              {gardenlet, gardenlet, operator},
		"istio":                     {gardenlet, gardenlet, gardenlet},
		"crds-extensions":           {gardenlet, gardenlet, gardenlet},
		"system":                    {gardenlet, gardenlet, gardenlet},
		"nginx-ingress":             {gardenlet, operator, operator},
		"fluent-operator":           {gardenlet, operator, operator},
		"fluent-bit":                {gardenlet, operator, operator},
		"vali":                      {gardenlet, operator, operator},
		"plutono":                   {gardenlet, operator, operator},
		"kube-state-metrics":        {gardenlet, operator, operator},
		"prometheus-operator":       {gardenlet, operator, operator},
	} {
		for _, each := range []struct {
			cluster Cluster
			want    bool
		}{{Cluster{}, test.seed}, {Cluster{Istio: true}, test.seed}, {Cluster{Garden: true}, test.garden}, {Cluster{Garden: true, Istio: true}, test.gardenWithIstio}} {
			if got := each.cluster.IsOperators(name); got != each.want {
				t.Errorf("%s in %+v: the operator owns it: %t", name, each.cluster, got)
			}
		}
	}
}
