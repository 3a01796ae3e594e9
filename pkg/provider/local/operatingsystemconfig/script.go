package operatingsystemconfig

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// marker is a file that exists once the script has run, so that it does nothing on later boots.
	marker = "/var/lib/osc/provision-osc-applied"
	// once ends the script on later boots.
	once  = "if [ -e " + marker + " ]; then\n  exit 0\nfi\n"
	units = "/etc/systemd/system"
	// defaultMode is the mode of files without permissions.
	defaultMode = 0o644
	// endOfText is the delimiter of texts in the script.
	endOfText = "END_OF_FILE_CONTENT"
)

// file is a file with its resolved content.
type file struct {
	path    string
	mode    uint32
	content []byte
	// plain writes the content to the script without encoding, so that the infrastructure can replace parts of it.
	plain bool
	// host is the name of the only host that gets the file, or empty for all hosts.
	host string
}

// script returns a shell script that writes files and units, and starts the units.
func script(files []file, configured []extensionsv1alpha1.Unit) (string, error) {
	var text strings.Builder
	text.WriteString("#!/bin/bash\nset -e\n\n" + once)
	for _, one := range append(files, filesOfUnits(configured)...) {
		if err := writeFile(&text, one); err != nil {
			return "", err
		}
	}
	text.WriteString("\nsystemctl daemon-reload\n")
	for _, unit := range configured {
		writeCommands(&text, unit)
	}
	fmt.Fprintf(&text, "\nmkdir -p %s\ntouch %s\n", path.Dir(marker), marker)
	return text.String(), nil
}

// filesOfUnits returns the files of units and their drop-ins.
func filesOfUnits(configured []extensionsv1alpha1.Unit) []file {
	var files []file
	for _, unit := range configured {
		if unit.Content != nil {
			files = append(files, file{path: path.Join(units, unit.Name), mode: defaultMode, content: []byte(*unit.Content)})
		}
		for _, dropIn := range unit.DropIns {
			files = append(files, file{path: path.Join(units, unit.Name+".d", dropIn.Name), mode: defaultMode, content: []byte(dropIn.Content)})
		}
	}
	return files
}

// writeFile adds commands that write a file.
func writeFile(text *strings.Builder, one file) error {
	text.WriteString("\n")
	indent := ""
	if one.host != "" {
		fmt.Fprintf(text, "if [ \"$(hostname)\" = %s ]; then\n", quote(one.host))
		indent = "  "
	}
	fmt.Fprintf(text, "%smkdir -p %s\n", indent, quote(path.Dir(one.path)))
	if one.plain {
		content := strings.TrimSuffix(string(one.content), "\n")
		if strings.Contains(content, endOfText) {
			return fmt.Errorf("file %s contains the text %s, so it cannot be sent unencoded", one.path, endOfText)
		}
		fmt.Fprintf(text, "%scat > %s << '%s'\n%s\n%s\n", indent, quote(one.path), endOfText, content, endOfText)
	} else {
		fmt.Fprintf(
			text, "%sbase64 -d > %s << '%s'\n%s\n%s\n", indent, quote(one.path), endOfText, base64.StdEncoding.EncodeToString(one.content),
			endOfText,
		)
	}
	fmt.Fprintf(text, "%schmod %04o %s\n", indent, one.mode, quote(one.path))
	if one.host != "" {
		text.WriteString("fi\n")
	}
	return nil
}

// writeCommands adds commands that enable and start a unit. They do not wait for the start, because systemd also runs the script itself.
func writeCommands(text *strings.Builder, unit extensionsv1alpha1.Unit) {
	name := quote(unit.Name)
	if unit.Enable == nil || *unit.Enable {
		fmt.Fprintf(text, "systemctl enable %s\n", name)
	} else {
		fmt.Fprintf(text, "systemctl disable %s\n", name)
	}
	command := extensionsv1alpha1.CommandRestart
	if unit.Command != nil {
		command = *unit.Command
	}
	fmt.Fprintf(text, "systemctl --no-block %s %s\n", command, name)
}

// quote returns a text as one word of a shell command.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
