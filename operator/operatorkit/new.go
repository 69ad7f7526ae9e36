package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// kitModule is the module of operatorkit.
const kitModule = "github.com/operatorkit/operatorkit"

func newCommand() *cobra.Command {
	n, kind := &names{}, ""
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a new operator into the folder NAME",
		Long: "Write a new operator into the folder NAME: an API, a resource set with objects, a status and an external system, tests that crash it at\n" +
			"every write, and what it takes to build, check and deploy it.",
		Example: "  operatorkit new shop --module example.com/shop --group shop.example.com --kind Store",
		Args:    one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			n.Name = filepath.Base(dir)
			if err := errors.Join(n.check(), n.setKind(kind)); err != nil {
				return err
			}
			entries, err := os.ReadDir(dir)
			if err == nil && len(entries) > 0 {
				return fmt.Errorf("the folder %s is there and not empty: choose another name, or remove it", dir)
			}
			if err := n.findKit(); err != nil {
				return err
			}
			made, err := project(n)
			if err != nil {
				return err
			}
			paths, err := made.write(dir)
			if err != nil {
				return err
			}
			if err := require(dir); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %d files into %s. Next:\n\n  cd %s\n  make test   # on a real control plane, which is built the first time: minutes\n  make run\n", len(paths), dir, dir)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&n.Module, "module", "", "path of the Go module, such as example.com/shop (required)")
	flags.StringVar(&n.Group, "group", "", "group of the API, such as shop.example.com (required)")
	flags.StringVar(&kind, "kind", "", "kind of the first API, such as Store (required)")
	return cmd
}

// project makes the files of a new project.
func project(n *names) (files, error) {
	f := files{}
	deepCopies, err := render("kind/deepcopy.go", n)
	if err != nil {
		return nil, err
	}
	head, err := render("kind/deepcopyhead.go", n)
	if err != nil {
		return nil, err
	}
	f["api/v1alpha1/zz_generated.deepcopy.go"] = append(head, deepCopies...)
	if n.Checkout != "" {
		if f["go.sum"], err = os.ReadFile(filepath.Join(n.Checkout, "go.sum")); err != nil {
			return nil, fmt.Errorf("read the sums of the checkout: %w", err)
		}
	}
	if err := f.add("api/v1alpha1/doc.go", "project/api/doc.go", n); err != nil {
		return nil, err
	}
	doc, err := parse("api/v1alpha1/doc.go", f["api/v1alpha1/doc.go"])
	if err != nil {
		return nil, err
	}
	return f, errors.Join(
		n.refuseDeclared(doc),
		f.addKind(n),
		f.add("go.mod", "project/go.mod", n),
		f.add("main.go", "project/main.go", n),
		f.add("operator.go", "project/operator.go", n),
		f.add("directory/directory.go", "project/directory/directory.go", n),
		f.add("directory/memory.go", "project/directory/memory.go", n),
		f.add("rights_test.go", "project/rights_test.go", n),
		f.add("Makefile", "project/Makefile", n),
		f.add("Dockerfile", "project/Dockerfile", n),
		f.add("README.md", "project/README.md", n),
		f.add(".dockerignore", "project/dockerignore", n),
		f.add(".gitignore", "project/gitignore", n),
		f.add(".golangci.yml", "project/golangci.yml", n),
		f.add(".github/workflows/ci.yml", "project/github/ci.yml", n),
	)
}

// findKit finds out which operatorkit this is: the checkout in whose folder the command runs, or else the release that it was built from.
func (n *names) findKit() error {
	dir, path, err := checkout()
	if err == nil && path == kitModule {
		n.Checkout, n.Kit = dir, "v0.0.0"
		return nil
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Path == kitModule && strings.HasPrefix(build.Main.Version, "v") {
		n.Kit = build.Main.Version
		return nil
	}
	return fmt.Errorf("this is no release of operatorkit, and it does not run in a checkout of it: run \"go run %s/operator/operatorkit@latest new …\", or \"go run ./operator/operatorkit new …\" in a checkout", kitModule)
}

// checkout returns the folder of the module in which the command runs, and its path.
func checkout() (dir, path string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("find the module of the folder: %w", err)
	}
	dir, path, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return dir, path, nil
}

// require writes into go.mod what the packages of the project need. With the sums of a checkout whose modules are in Go's cache that takes no
// network.
func require(dir string) error {
	cmd := exec.Command("go", "list", "-mod=mod", "-deps", "-test", "./...", kitModule+"/operator/operatortest/testenv")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the project is written, but its modules could not be found: %w: %s: run \"go mod tidy\" in %s when they can", err, strings.TrimSpace(stderr.String()), dir)
	}
	return nil
}
