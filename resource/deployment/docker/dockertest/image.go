package dockertest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the program of images
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

// Image is an image with a program and nothing else but what that needs. The program is the entrypoint.
type Image struct {
	// content returns what is in it. Default: the program of App, at /app.
	content func() ([]file, error)
	// entrypoint is the path of the program. Default: /app.
	entrypoint string
	// Name is its reference, with a tag.
	Name string
	// Env are environment variables, as NAME=value.
	Env []string
	// Command are the arguments of the program, unless a container has others. Default: none.
	Command []string
	// Health are the arguments of the program with which it tells whether it works. Default: there is no check.
	Health []string
	// HealthInterval is the time between two checks. Default: 200ms.
	HealthInterval time.Duration
	// HealthRetries is how many failures in a row make it unhealthy. Default: 3.
	HealthRetries int
}

// file is a file of an image.
type file struct {
	path    string
	mode    int64
	content []byte
}

// appPath is where programs are that are built here.
const appPath = "/app"

// app is the program of App. It is built from here, and not by its path, so that Go's cache of test results knows of it.
//
//go:embed app/main.go
var app []byte

// HostHeader is the header of the answers of App in which it says on which host it runs: the beginning of its container's ID.
const HostHeader = "Container-Host"

// App returns an image of a program for tests and examples, with a health check. It answers at port 8080 with its version, which is the
// environment variable VERSION, and ends when it is asked to. The environment variable MODE says what else it does:
//   - unhealthy: its checks fail.
//   - exit: it ends at once, with 3.
//   - slow: its checks fail until /ready is asked for.
//
// Only one in the mode unhealthy becomes unhealthy in less than a second: machines that are busy start programs late.
//
// It asks another one when it is asked for /fetch?url=, and answers with what that says.
//
// With arguments it does something else: "exit" and a number ends with it, "hang" never ends by itself, and "migrate" stands for the
// migration of a database, says so and ends with 0.
func App(name string, env map[string]string) Image {
	image := Image{Name: name, Health: []string{"health"}, HealthRetries: 30}
	switch env["MODE"] {
	case "unhealthy":
		image.HealthRetries = 3
	case "slow":
		image.HealthRetries = 3000 // ten minutes
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		image.Env = append(image.Env, k+"="+env[k])
	}
	return image
}

// Load puts images onto the engine. Those that are there already are replaced.
func (e *Engine) Load(ctx context.Context, images ...Image) error {
	engine, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	// It is sent while it is made: that of a database and others has hundreds of megabytes.
	sent, archived := io.Pipe()
	defer func() { _ = sent.Close() }()
	go func() { _ = archived.CloseWithError(archive(archived, images)) }()
	loaded, err := engine.ImageLoad(ctx, sent)
	if err != nil {
		return fmt.Errorf("load images onto %s: %w", e.name, err)
	}
	_, err = io.Copy(io.Discard, loaded)
	if closed := loaded.Close(); err == nil {
		err = closed
	}
	return err
}

// build returns the program of App.
var build = sync.OnceValues(func() ([]file, error) { return compileSource("the program of images", app) })

// compileSource builds a program of one file, which needs the standard library alone. It is no package that could be built where this one is used.
func compileSource(what string, main []byte) ([]file, error) {
	dir, err := os.MkdirTemp("", "dockertest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, main, 0o600); err != nil {
		return nil, err
	}
	return compile(what, dir, source, "GOFLAGS=", "GOWORK=off")
}

// Program returns an image of a program of the module in which it is called, by the import path of its main package, with a health check by its
// argument "health". That Go's cache of test results knows of the program is the caller's to see to: let the test import what it is made of.
func Program(name, path string, env ...string) Image {
	content, _ := programsOfPackages.LoadOrStore(path, sync.OnceValues(func() ([]file, error) {
		return compile("the program "+path, "", path)
	}))
	return Image{Name: name, Env: env, Health: []string{"health"}, HealthRetries: 30, content: content.(func() ([]file, error))}
}

// programsOfPackages are those of Program, by their import paths: each is built once.
var programsOfPackages sync.Map

// Names returns an image of the program for docker.Names.
func Names(name string) Image { return Image{Name: name, content: nameserver} }

// nameserver is the program of package names, which a module that this one is part of can build.
var nameserver = sync.OnceValues(func() ([]file, error) {
	return compile("the server of names", "", reflect.TypeFor[names.Server]().PkgPath()+"/nameserver")
})

// compile builds a program that needs nothing else in its image, in a folder, with variables beside those of the environment.
func compile(what, folder, target string, env ...string) ([]file, error) {
	dir, err := os.MkdirTemp("", "dockertest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, target) //nolint:gosec // what this package builds
	cmd.Dir = folder
	cmd.Env = slices.Concat(os.Environ(), []string{"CGO_ENABLED=0", "GOOS=linux"}, env)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", what, err, out)
	}
	content, err := os.ReadFile(program) //nolint:gosec // it was built there
	return []file{{path: appPath, mode: 0o755, content: content}}, err
}

func (i *Image) read() ([]file, error) {
	if i.content == nil {
		return build()
	}
	return i.content()
}

// entry is an image in an archive, in the form of "docker save".
type entry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// archive writes images in the form of "docker save".
func archive(out io.Writer, images []Image) error {
	w := tar.NewWriter(out)
	written := map[string]bool{}
	add := func(name string, mode int64, content []byte) error {
		if written[name] {
			return nil
		}
		written[name] = true
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	var manifest []entry
	for _, image := range images {
		files, err := image.read()
		if err != nil {
			return err
		}
		layer, err := layerOf(files)
		if err != nil {
			return err
		}
		config, err := image.config(digest(layer))
		if err != nil {
			return err
		}
		e := entry{Config: digest(config) + ".json", RepoTags: []string{image.Name}, Layers: []string{digest(layer) + "/layer.tar"}}
		if err := add(e.Layers[0], 0o644, layer); err != nil {
			return err
		}
		if err := add(e.Config, 0o644, config); err != nil {
			return err
		}
		manifest = append(manifest, e)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := add("manifest.json", 0o644, text); err != nil {
		return err
	}
	return w.Close()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func layerOf(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.path, "/"), Mode: f.mode, Size: int64(len(f.content))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// config returns the configuration of the image, whose digest is its ID.
func (i *Image) config(layer string) ([]byte, error) {
	type health struct {
		Test              []string
		Interval, Timeout time.Duration
		Retries           int
	}
	type program struct {
		Env         []string
		Entrypoint  []string
		Cmd         []string `json:",omitempty"`
		Healthcheck *health  `json:",omitempty"`
	}
	type rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	p := program{Env: i.Env, Cmd: i.Command, Entrypoint: []string{cmp.Or(i.entrypoint, appPath)}}
	if len(i.Health) > 0 {
		interval := i.HealthInterval
		if interval == 0 {
			interval = 200 * time.Millisecond
		}
		retries := i.HealthRetries
		if retries == 0 {
			retries = 3
		}
		p.Healthcheck = &health{Test: append([]string{"CMD", appPath}, i.Health...), Interval: interval, Timeout: 5 * time.Second, Retries: retries}
	}
	return json.Marshal(struct {
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Created      time.Time `json:"created"`
		Config       program   `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
	}{runtime.GOARCH, "linux", time.Unix(1, 0).UTC(), p, rootFS{Type: "layers", DiffIDs: []string{"sha256:" + layer}}})
}
