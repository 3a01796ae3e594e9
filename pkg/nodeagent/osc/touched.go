package osc

import extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"

// Touched returns what the steps of Plan with the same arguments may change on a machine, together with what was attempted before. If these steps
// are not finished, it is the argument attempted of the next plan.
func Touched(wanted, applied, attempted *Config) *Config {
	p := &planner{wanted: wanted, applied: applied, attempted: attempted}
	touched := &Config{}
	for _, file := range wanted.Files {
		if p.fileChanged(file) {
			touched.Files = append(touched.Files, file)
		}
	}
	for i := range wanted.Units {
		if p.unitChanged(&wanted.Units[i]) {
			touched.Units = append(touched.Units, wanted.Units[i])
		}
	}
	var registries []extensionsv1alpha1.RegistryConfig
	for _, registry := range wanted.registries() {
		if p.registryChanged(&registry) {
			registries = append(registries, registry)
		}
	}
	if applied != nil {
		for _, path := range p.removedFiles() {
			if file := applied.file(path); file != nil {
				touched.Files = append(touched.Files, *file)
			}
		}
		for _, unit := range applied.Units {
			if wanted.unit(unit.Name) == nil {
				touched.Units = append(touched.Units, unit)
			}
		}
		for _, registry := range applied.registries() {
			if wanted.registry(registry.Upstream) == nil {
				registries = append(registries, registry)
			}
		}
	}
	touched.CRI = touchedCRI(p, registries)
	return Union(keepOld(touched, applied), attempted)
}

// touchedCRI returns the settings of containerd that change, and registries. Without a change of the settings, there is no sandbox image.
func touchedCRI(p *planner, registries []extensionsv1alpha1.RegistryConfig) *extensionsv1alpha1.CRIConfig {
	if p.containerdChanged() {
		cri := settings(p.wanted)
		cri.Containerd.Registries = registries
		return cri
	}
	if len(registries) == 0 {
		return nil
	}
	return &extensionsv1alpha1.CRIConfig{
		Name: extensionsv1alpha1.CRINameContainerD, Containerd: &extensionsv1alpha1.ContainerdConfig{Registries: registries},
	}
}

// keepOld adds to each unit the content and the drop-ins that it had, because they may still be on the machine.
func keepOld(touched, applied *Config) *Config {
	if applied == nil {
		return touched
	}
	old := &Config{}
	for _, unit := range touched.Units {
		if before := applied.unit(unit.Name); before != nil {
			old.Units = append(old.Units, *before)
		}
	}
	return Union(old, touched)
}
