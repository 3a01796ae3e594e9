// Command sbom writes the components of a Go program, as recorded in the program itself (go version -m), in CycloneDX.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 2 {
		return fmt.Errorf("name a program and its version")
	}
	info, err := buildinfo.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON)
	return encoder.SetPretty(true).Encode(describe(info, filepath.Base(arguments[0]), arguments[1]))
}

// describe lists the modules of a program, including the standard library, and the build settings.
func describe(info *debug.BuildInfo, name, version string) *cyclonedx.BOM {
	main := component(&debug.Module{Path: info.Main.Path, Version: version})
	main.Type, main.Name = cyclonedx.ComponentTypeApplication, name
	properties := []cyclonedx.Property{{Name: "go:package", Value: info.Path}}
	for _, setting := range info.Settings {
		if strings.HasPrefix(setting.Key, "GO") || strings.HasPrefix(setting.Key, "CGO_ENABLED") || strings.HasPrefix(setting.Key, "vcs") {
			properties = append(properties, cyclonedx.Property{Name: "go:" + setting.Key, Value: setting.Value})
		}
	}
	main.Properties = &properties

	library := component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	components, refs := []cyclonedx.Component{library}, []string{library.BOMRef}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		one := component(module)
		components, refs = append(components, one), append(refs, one.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom
}

// component converts a module to a component with its package URL. It omits the hash of go.sum, which is the hash of a
// directory, not of a file.
func component(module *debug.Module) cyclonedx.Component {
	url := "pkg:golang/" + module.Path + "@" + module.Version
	result := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: url, BOMRef: url,
	}
	if module.Sum != "" {
		result.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return result
}
