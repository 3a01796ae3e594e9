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
	Name      string                  `json:"name"`
	DropIns   []operatingSystemDropIn `json:"dropIns"`
	FilePaths []string                `json:"filePaths"`
}

type operatingSystemDropIn struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// operatingSystemFile is a file on a node. Its content may be secret.
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

// checkOperatingSystemConfig does not require a type, as in gardener-resource-manager. It reads only the paths and hosts
// of files from the status, which requests for the object itself do not change.
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
	}
	errs = append(errs, each(spec.Files, specPath.Child("files"), checkFile)...)
	errs = append(errs, checkDuplicateFiles(spec.Files, extensionFiles)...)
	errs = append(errs, each(spec.Units, specPath.Child("units"), func(path *field.Path, unit *operatingSystemUnit) field.ErrorList {
		return checkUnit(path, unit, paths)
	})...)
	return append(errs, spec.checkCRI()...)
}

// checkUnit checks a unit. paths are the paths of all files.
func checkUnit(path *field.Path, unit *operatingSystemUnit, paths sets.Set[string]) field.ErrorList {
	errs := required(text{path.Child("name"), unit.Name})
	errs = append(errs, each(unit.DropIns, path.Child("dropIns"), func(path *field.Path, dropIn *operatingSystemDropIn) field.ErrorList {
		return required(text{path.Child("name"), dropIn.Name}, text{path.Child("content"), dropIn.Content})
	})...)
	return append(errs, each(unit.FilePaths, path.Child("filePaths"), func(path *field.Path, filePath *string) field.ErrorList {
		if paths.Has(*filePath) {
			return nil
		}
		return field.ErrorList{field.Invalid(path, *filePath, "must be the path of a file of this object")}
	})...)
}

func checkFile(path *field.Path, file *operatingSystemFile) field.ErrorList {
	errs := required(text{path.Child("path"), file.Path})
	path = path.Child("content")
	sources := 0
	if file.Content.SecretRef != nil {
		sources++
		errs = append(errs, required(
			text{path.Child("secretRef", "name"), file.Content.SecretRef.Name},
			text{path.Child("secretRef", "dataKey"), file.Content.SecretRef.DataKey},
		)...)
	}
	if file.Content.Inline != nil {
		sources++
		if encoding := file.Content.Inline.Encoding; encoding != "" && encoding != "b64" {
			errs = append(errs, field.NotSupported(path.Child("inline", "encoding"), encoding, []string{"", "b64"}))
		}
		errs = append(errs, required(text{path.Child("inline", "data"), file.Content.Inline.Data})...)
	}
	if file.Content.ImageRef != nil {
		sources++
		errs = append(errs, required(
			text{path.Child("imageRef", "image"), file.Content.ImageRef.Image},
			text{path.Child("imageRef", "filePathInImage"), file.Content.ImageRef.FilePathInImage},
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

// checkDuplicateFiles allows several files with the same path only if each of them is for another host.
func checkDuplicateFiles(files, extensionFiles []operatingSystemFile) field.ErrorList {
	hosts := map[string]sets.Set[string]{}
	check := func(path *field.Path, file *operatingSystemFile) field.ErrorList {
		seen, found := hosts[file.Path]
		if !found {
			seen = sets.New[string]()
			hosts[file.Path] = seen
		}
		collides := file.HostName == "" || seen.HasAny("", file.HostName)
		seen.Insert(file.HostName)
		if !found || !collides || file.Path == "" {
			return nil
		}
		return field.ErrorList{field.Duplicate(path.Child("path"), file.Path)}
	}
	return append(each(files, specPath.Child("files"), check), each(extensionFiles, field.NewPath("status", "extensionFiles"), check)...)
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
		errs = append(errs, field.Forbidden(path, "containerd is configured only with the purpose "+purposeReconcile))
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
