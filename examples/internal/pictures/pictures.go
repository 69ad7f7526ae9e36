// Package pictures takes the pictures of the README, from the pages of examples that run. They are thrown away unless somebody says where
// to:
//
//	go test ./examples/platform -run TestPictures -pictures ../../docs
package pictures

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

var folder = flag.String("pictures", "", "folder to write pictures of the example's page to")

const (
	// width is how many pixels wide a picture is.
	width = 1280
	// maxPicture is how many bytes it may take.
	maxPicture = 200 << 10
)

// Browser is a headless Chromium.
type Browser struct {
	t      *testing.T
	ctx    context.Context
	folder string
}

// New starts a browser that ends with the test.
func New(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-all: it takes pictures of a story that another test tells")
	}
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
		}
	}
	switch {
	case program != "":
	case os.Getenv("CI") == "true" || *folder != "":
		t.Fatal("there is no Chromium: install it, for example by apt-get install chromium")
	default:
		t.Skip("there is no Chromium: install it, for example by apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		// The sandbox takes privileges that containers mostly lack. All that is opened is our own.
		chromedp.NoSandbox)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		stopAllocator()
	})
	// What comes first starts it, and must not have a context that ends before the test does.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	b := &Browser{t: t, ctx: ctx, folder: *folder}
	if b.folder == "" {
		b.folder = t.TempDir()
	}
	return b
}

// Take writes a picture of the top of a page, so many pixels high, in light and in dark.
func (b *Browser) Take(name, address string, height int64) {
	b.t.Helper()
	within(b, "size the page", chromedp.EmulateViewport(width, height))
	for _, scheme := range []string{"light", "dark"} {
		within(b, "choose "+scheme, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		within(b, "open "+address, chromedp.Navigate(address))
		operatortest.Eventually(b.t, "the page is live", func() bool {
			return within(b, "look", chromedp.Evaluate[bool](`document.body.innerText.includes("Live")`))
		})
		data := within(b, "take a picture", chromedp.CaptureScreenshot())
		file := filepath.Join(b.folder, name+"-"+scheme+".png")
		if len(data) > maxPicture {
			b.t.Errorf("%s takes %d bytes, which is more than %d", file, len(data), maxPicture)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// within runs an action that must end in time.
func within[T any](b *Browser, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return value
}
