package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// addition is what a command adds to a project: new files, and changes of existing ones.
type addition struct {
	made    files
	changed files
}

// apply writes everything or nothing, and says what it wrote.
func (a addition) apply(w io.Writer, dir, next string) error {
	if err := a.made.refuseExisting(dir); err != nil {
		return err
	}
	made, err := a.made.write(dir)
	if err != nil {
		return err
	}
	changed, err := a.changed.write(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "wrote %s\nchanged %s\n%s\n", strings.Join(made, ", "), strings.Join(changed, ", "), next)
	return err
}

func addAPICommand() *cobra.Command {
	kind := ""
	cmd := &cobra.Command{
		Use: "api", Short: "Add a kind, with a framework and a test of its own", Example: "  operatorkit add api --kind Cart", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := addAPI(".", kind)
			if err != nil {
				return err
			}
			return a.apply(cmd.OutOrStdout(), ".", "Next: make test, and make deploy, which gives the operator the rights that it needs now.")
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "the kind, such as Cart (required)")
	return cmd
}

func addAPI(dir, kind string) (addition, error) {
	a := addition{made: files{}, changed: files{}}
	n, err := readProject(dir)
	if err != nil {
		return a, err
	}
	if err := n.setKind(kind); err != nil {
		return a, err
	}
	if err := a.made.addKind(n); err != nil {
		return a, err
	}
	doc, err := readSource(dir, "api/v1alpha1/doc.go")
	if err != nil {
		return a, err
	}
	if have, err := kinds(doc); err == nil && slices.Contains(have, kind) {
		return a, fmt.Errorf("there is a kind %s already: choose another name", kind)
	}
	api, err := readPackage(dir, "api/v1alpha1")
	if err != nil {
		return a, err
	}
	if err := n.refuseDeclared(api...); err != nil {
		return a, err
	}
	if doc, err = doc.insert("kinds", "&"+kind+"{}, &"+kind+"List{}", ""); err != nil {
		return a, err
	}
	main, err := readSource(dir, "operator.go")
	if err != nil {
		return a, err
	}
	if main, err = main.insert("frameworks", n.Package+".New", ""); err != nil {
		return a, err
	}
	if main, err = main.imports(n.Module + "/" + n.Package); err != nil {
		return a, err
	}
	rights, err := readSource(dir, "rights_test.go")
	if err != nil {
		return a, err
	}
	if rights, err = rights.insert("lives", "lifeOf"+n.Kinds, ""); err != nil {
		return a, err
	}
	const generated = "api/v1alpha1/zz_generated.deepcopy.go"
	copies, err := os.ReadFile(filepath.Join(dir, generated))
	if err != nil {
		return a, fmt.Errorf("%w: run make generate first", err)
	}
	more, err := render("kind/deepcopy.go", n)
	a.changed[doc.path], a.changed[main.path], a.changed[rights.path] = doc.content, main.content, rights.content
	a.changed[generated] = append(copies, more...)
	return a, err
}

// kindOf finds the kind that a command is about: the one that was given, or the only one that there is.
func (n *names) kindOf(dir, given string) error {
	doc, err := readSource(dir, "api/v1alpha1/doc.go")
	if err != nil {
		return err
	}
	have, err := kinds(doc)
	switch {
	case err != nil && given == "":
		return fmt.Errorf("%w: say --kind", err)
	case err == nil && given == "" && len(have) == 1:
		given = have[0]
	case err == nil && given == "":
		return fmt.Errorf("the project has several kinds: say with --kind which one is meant: %s", strings.Join(have, ", "))
	case err == nil && !slices.Contains(have, given):
		return fmt.Errorf("--kind %q is none of the project's kinds, which are %s", given, strings.Join(have, ", "))
	}
	return n.setKind(given)
}

func addVersionCommand() *cobra.Command {
	kind := ""
	cmd := &cobra.Command{
		Use: "version NAME", Short: "Add a version of the logic of a kind, as a shadow first", Example: "  operatorkit add version v2 --kind Store", Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := addVersion(".", kind, args[0])
			if err != nil {
				return err
			}
			return a.apply(cmd.OutOrStdout(), ".", "Next: change its resources; \"go run . plan -A --shadow\" tells what that would change.")
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "the kind, if there are several")
	return cmd
}

func addVersion(dir, kind, version string) (addition, error) {
	a := addition{made: files{}, changed: files{}}
	if !versionPattern.MatchString(version) {
		return a, fmt.Errorf("%q can't be the name of a version: it is v and a number, such as v2", version)
	}
	n, err := readProject(dir)
	if err != nil {
		return a, err
	}
	if err := n.kindOf(dir, kind); err != nil {
		return a, err
	}
	n.Version = version
	logic, err := readSource(dir, n.Package+"/"+n.Package+".go")
	if err != nil {
		return a, err
	}
	versions, err := logic.list("versions")
	if err != nil {
		return a, fmt.Errorf("%w: nothing was written; write the version yourself", err)
	}
	have := logic.elements(versions)
	if slices.Contains(have, version) {
		return a, fmt.Errorf("there is a version %s of %s already: choose another name", version, n.Kind)
	}
	if len(have) > 0 {
		before, err := readVersion(dir, n.Package, have[len(have)-1])
		if err != nil {
			return a, err
		}
		n.Resources = before
	}
	if logic, err = logic.insert("versions", version, ""); err != nil {
		return a, err
	}
	a.changed[logic.path] = logic.content
	return a, a.made.add(n.Package+"/"+version+".go", "version/version.go", n)
}

// readVersion returns the resources of a version, as Go code.
func readVersion(dir, pkg, version string) (string, error) {
	s, err := findVersion(dir, pkg, version)
	if err != nil {
		return "", err
	}
	list, err := s.list(version + ".resources")
	if err != nil {
		return "", fmt.Errorf("%w: nothing was written; write the version yourself", err)
	}
	return strings.Join(s.elements(list), ", "), nil
}

// findVersion returns the file of a package in which a version stands.
func findVersion(dir, pkg, version string) (*source, error) {
	sources, err := readPackage(dir, pkg)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if s.value(version) != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the package %s has no variable %s, which is a version of its logic: say with --version which one is meant", pkg, version)
}

func addResourceCommand() *cobra.Command {
	kind, sort, version := "", "", ""
	cmd := &cobra.Command{
		Use: "resource NAME", Short: "Add a resource to a version of the logic of a kind", Example: "  operatorkit add resource backups --kind Store --type external", Args: one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := addResource(".", kind, version, sort, args[0])
			if err != nil {
				return err
			}
			return a.apply(cmd.OutOrStdout(), ".", "Next: say in it what is desired; \"go run . plan -A\" tells what it would change.")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "the kind, if there are several")
	flags.StringVar(&version, "version", "", "the version of the logic (default the last one)")
	flags.StringVar(&sort, "type", "objects", "objects of Kubernetes, or external")
	return cmd
}

func addResource(dir, kind, version, sort, name string) (addition, error) {
	a := addition{made: files{}, changed: files{}}
	if sort != "objects" && sort != "external" {
		return a, fmt.Errorf("--type is objects or external, and not %q", sort)
	}
	n, err := readProject(dir)
	if err != nil {
		return a, err
	}
	if err := errors.Join(n.kindOf(dir, kind), n.setResource(name)); err != nil {
		return a, err
	}
	if version == "" {
		logic, err := readSource(dir, n.Package+"/"+n.Package+".go")
		if err != nil {
			return a, err
		}
		list, err := logic.list("versions")
		if err != nil || len(list.Elts) == 0 {
			return a, fmt.Errorf("%s does not tell which versions there are: nothing was written; say --version", logic.path)
		}
		have := logic.elements(list)
		version = have[len(have)-1]
	}
	s, err := findVersion(dir, n.Package, version)
	if err != nil {
		return a, err
	}
	switch taken, err := declares(dir, n.Package, "new"+n.Title); {
	case err != nil:
		return a, err
	case taken:
		return a, fmt.Errorf("the package %s has a new%s already: choose another name", n.Package, n.Title)
	}
	if s, err = s.insert(version+".resources", "new"+n.Title, "newStatus"); err != nil {
		return a, err
	}
	if _, err := os.Stat(filepath.Join(dir, "directory")); sort == "external" && err != nil {
		return a, errors.New("the folder directory is gone, with whose client an external resource begins: nothing was written; see resource/keyedresource of operatorkit for how to write one")
	}
	a.changed[s.path] = s.content
	return a, a.made.add(n.Package+"/"+n.Resource+".go", "resource/"+sort+".go", n)
}

// declares reports whether a package has something of that name.
func declares(dir, pkg, name string) (bool, error) {
	sources, err := readPackage(dir, pkg)
	return slices.ContainsFunc(sources, func(s *source) bool { return slices.Contains(s.declared(), name) }), err
}
