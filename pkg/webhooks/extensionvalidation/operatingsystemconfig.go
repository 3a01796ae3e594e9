package extensionvalidation

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	purposeProvision = "provision"
	purposeReconcile = "reconcile"

	cgroupDriverCgroupfs = "cgroupfs"
	cgroupDriverSystemd  = "systemd"
)

type operatingSystemConfigSpec struct {
	Type    string                `json:"type"`
	Purpose string                `json:"purpose"`
	Units   []operatingSystemUnit `json:"units"`
	Files   []operatingSystemFile `json:"files"`
	CRI     *struct {
		CgroupDriver *string           `json:"cgroupDriver"`
		Containerd   *containerdConfig `json:"containerd"`
	} `json:"criConfig"`
}

type operatingSystemUnit struct {
	Name    string `json:"name"`
	DropIns []struct {
		Name    string `json:"name"`
		Content string `json:"content"`
	} `json:"dropIns"`
	FilePaths []string `json:"filePaths"`
}

// operatingSystemFile is one on a node. Its content may be secret.
type operatingSystemFile struct {
	Path     string `json:"path"`
	HostName string `json:"hostName"`
	Content  struct {
		SecretRef *struct {
			Name    string `json:"name"`
			DataKey string `json:"dataKey"`
		} `json:"secretRef"`
		Inline *struct {
			Encoding string `json:"encoding"`
			Data     string `json:"data"`
		} `json:"inline"`
		ImageRef *struct {
			Image           string `json:"image"`
			FilePathInImage string `json:"filePathInImage"`
		} `json:"imageRef"`
	} `json:"content"`
}

// checkOperatingSystemConfig requires no type, as gardener-resource-manager does not. Of the status, which requests for the object
// itself do not change, it reads the paths and hosts of files alone.
func checkOperatingSystemConfig(config *object[operatingSystemConfigSpec]) field.ErrorList {
	spec, extensionFiles := &config.Spec, config.Status.ExtensionFiles
	var errs field.ErrorList
	switch spec.Purpose {
	case "":
		errs = append(errs, missing(specPath.Child("purpose")))
	case purposeProvision, purposeReconcile:
	default:
		errs = append(errs, field.NotSupported(specPath.Child("purpose"), spec.Purpose, []string{purposeProvision, purposeReconcile}))
	}
	paths := sets.New[string]()
	for i := range extensionFiles {
		paths.Insert(extensionFiles[i].Path)
	}
	for i := range spec.Files {
		paths.Insert(spec.Files[i].Path)
		errs = append(errs, spec.Files[i].check(specPath.Child("files").Index(i))...)
	}
	errs = append(errs, checkDuplicateFiles(spec.Files, extensionFiles)...)
	for i := range spec.Units {
		errs = append(errs, spec.Units[i].check(specPath.Child("units").Index(i), paths)...)
	}
	return append(errs, spec.checkCRI()...)
}

// check says what is wrong with a unit. Paths are those of all files.
func (u *operatingSystemUnit) check(path *field.Path, paths sets.Set[string]) field.ErrorList {
	errs := required(text{path.Child("name"), u.Name})
	for i, dropIn := range u.DropIns {
		dropInPath := path.Child("dropIns").Index(i)
		errs = append(errs, required(text{dropInPath.Child("name"), dropIn.Name}, text{dropInPath.Child("content"), dropIn.Content})...)
	}
	for i, filePath := range u.FilePaths {
		if !paths.Has(filePath) {
			errs = append(errs, field.Invalid(path.Child("filePaths").Index(i), filePath, "must be the path of a file of this object"))
		}
	}
	return errs
}

func (f *operatingSystemFile) check(path *field.Path) field.ErrorList {
	errs := required(text{path.Child("path"), f.Path})
	path = path.Child("content")
	sources := 0
	if f.Content.SecretRef != nil {
		sources++
		errs = append(errs, required(
			text{path.Child("secretRef", "name"), f.Content.SecretRef.Name},
			text{path.Child("secretRef", "dataKey"), f.Content.SecretRef.DataKey},
		)...)
	}
	if f.Content.Inline != nil {
		sources++
		if encoding := f.Content.Inline.Encoding; encoding != "" && encoding != "b64" {
			errs = append(errs, field.NotSupported(path.Child("inline", "encoding"), encoding, []string{"", "b64"}))
		}
		errs = append(errs, required(text{path.Child("inline", "data"), f.Content.Inline.Data})...)
	}
	if f.Content.ImageRef != nil {
		sources++
		errs = append(errs, required(
			text{path.Child("imageRef", "image"), f.Content.ImageRef.Image},
			text{path.Child("imageRef", "filePathInImage"), f.Content.ImageRef.FilePathInImage},
		)...)
	}
	const one = "must have exactly one of secretRef, inline and imageRef"
	switch {
	case sources == 0:
		errs = append(errs, field.Required(path, one))
	case sources > 1:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, one))
	}
	return errs
}

// checkDuplicateFiles lets files have one path only if each of them is for another host.
func checkDuplicateFiles(files, extensionFiles []operatingSystemFile) field.ErrorList {
	hosts := map[string]sets.Set[string]{}
	var errs field.ErrorList
	check := func(path *field.Path, files []operatingSystemFile) {
		for i := range files {
			file := &files[i]
			seen, found := hosts[file.Path]
			if !found {
				seen = sets.New[string]()
				hosts[file.Path] = seen
			}
			if found && (file.HostName == "" || seen.HasAny("", file.HostName)) {
				errs = append(errs, field.Duplicate(path.Index(i).Child("path"), file.Path))
			}
			seen.Insert(file.HostName)
		}
	}
	check(specPath.Child("files"), files)
	check(field.NewPath("status", "extensionFiles"), extensionFiles)
	return errs
}

func (s *operatingSystemConfigSpec) checkCRI() field.ErrorList {
	if s.CRI == nil {
		return nil
	}
	path := specPath.Child("criConfig")
	var errs field.ErrorList
	if driver := s.CRI.CgroupDriver; driver != nil && *driver != cgroupDriverCgroupfs && *driver != cgroupDriverSystemd {
		errs = append(errs, field.NotSupported(path.Child("cgroupDriver"), *driver, []string{cgroupDriverCgroupfs, cgroupDriverSystemd}))
	}
	switch path := path.Child("containerd"); {
	case s.CRI.Containerd == nil:
	case s.Purpose == purposeProvision:
		errs = append(errs, field.Forbidden(path, "containerd is configured with the purpose "+purposeReconcile+" only"))
	default:
		errs = append(errs, s.CRI.Containerd.check(path)...)
	}
	return errs
}

func compareOperatingSystemConfigs(spec, old *operatingSystemConfigSpec) field.ErrorList {
	return immutable(
		change{specPath.Child("type"), spec.Type, old.Type},
		change{specPath.Child("purpose"), spec.Purpose, old.Purpose},
	)
}
