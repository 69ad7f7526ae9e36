package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// Converted is what becomes of a project.
type Converted struct {
	// Services come by name. They have no namespace.
	Services []*v1alpha1.MachineService
	// Remarks are what their reader has to know: what is left out, and what is to be done.
	Remarks []Remark
}

// Remark is about a part of the files.
type Remark struct {
	// Path is the part, such as services.web.depends_on.
	Path string
	// Text says what becomes of it.
	Text string
	// Lacking tells that it has no counterpart.
	Lacking bool
}

// String returns the remark as a line.
func (r Remark) String() string { return r.Path + ": " + r.Text }

// Lacking returns those remarks that are about what has no counterpart.
func (c *Converted) Lacking() []Remark {
	return slices.DeleteFunc(slices.Clone(c.Remarks), func(r Remark) bool { return !r.Lacking })
}

// add adds a remark once.
func (c *Converted) add(r Remark) {
	if !slices.Contains(c.Remarks, r) {
		c.Remarks = append(c.Remarks, r)
	}
}

// forOthers are parts that say something to readers and other programs, and nothing to machines.
var forOthers = regexp.MustCompile(`^(x-[^.]+|.+\.x-[^.]+|configs\..+\.name|services\..+\.(attach|develop|expose|ports \([^)]*\)\.name|volumes\[[0-9]+\]\.consistency))$`)

func (c *Converted) lacks(path string) {
	if forOthers.MatchString(path) {
		c.add(Remark{Path: path, Text: "it says nothing to machines, and is left out"})
		return
	}
	c.add(Remark{Path: path, Text: "it has no counterpart, and is left out", Lacking: true})
}

// notChosen remembers what is behind profiles.
func (c *Converted) notChosen(path string, profiles []string) {
	text := "it is left out"
	if len(profiles) > 0 {
		text = fmt.Sprintf("its profile is not chosen, and it is left out: choose it with --profile %s", quote(strings.Join(profiles, ",")))
	}
	c.add(Remark{Path: path, Text: text})
}

// plain are texts that shells take as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote returns a text as an argument for a shell.
func quote(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
